//! Data models that libraries of a field build on arrays and groups, one folder each. The rest of the tree knows a domain
//! only by its row in [`DOMAINS`].

pub mod bioimaging;
pub mod cf;
pub mod filestore;
pub mod soma;
pub mod vcf;

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use tilefs_format::error::Result;
use tilefs_format::schema::ArraySchema;
use tilefs_reader::array::Array;
use tilefs_reader::group::Group;

use crate::fields::array_form::ArrayForm;
use crate::node::{Folder, Node};
use crate::options::OpenOptions;
use crate::views::builder::FolderBuilder;

pub use vcf::lists::VariantLists;

/// All domains. The first one that has an own form of a folder takes precedence, and texts are in this order.
pub const DOMAINS: [Domain; 5] =
    [soma::group::DOMAIN, cf::group::DOMAIN, vcf::group::DOMAIN, bioimaging::group::DOMAIN, filestore::DOMAIN];

/// Returns the form of an array of a group.
pub type MemberForm = fn(&Group, &Arc<Array>) -> Result<Option<ArrayForm>>;

/// Adds files of a domain to the folder of an array that was last modified at a time.
pub type AddToArray = fn(&mut FolderBuilder, &Arc<Array>, SystemTime) -> Result<()>;

/// Returns the height and the width of a matrix that a domain stores in an array.
pub type MatrixLengths = fn(&Array) -> Result<Option<[u64; 2]>>;

/// The additions of a domain to groups and arrays; each function decides whether an object is of the domain.
#[derive(Clone, Copy)]
pub struct Domain {
    /// Makes what it adds to the folder of a group. Reads nothing.
    pub of_group: Option<fn(ShownGroup) -> Box<dyn GroupDomain>>,
    /// Returns the form of an array.
    pub array_form: Option<fn(&ArraySchema) -> Option<ArrayForm>>,
    /// Returns the form of an array that has another one in its group.
    pub member_form: Option<MemberForm>,
    /// Adds files to the folder of an array.
    pub add_to_array: Option<AddToArray>,
    /// Returns the lengths of a matrix, if the domain stores them.
    pub matrix_lengths: Option<MatrixLengths>,
}

impl Domain {
    /// A domain that adds nothing.
    pub const NONE: Domain =
        Domain { of_group: None, array_form: None, member_form: None, add_to_array: None, matrix_lengths: None };
}

/// A group whose folder is shown.
#[derive(Clone)]
pub struct ShownGroup {
    pub group: Arc<Group>,
    pub options: Arc<OpenOptions>,
    pub modified: SystemTime,
}

/// Makes the group of the members in `zarr/`, as it is without a domain; its argument is the reason why it is not in the
/// form of a domain, if that could be expected.
pub type PlainZarr = Arc<dyn Fn(Option<String>) -> Arc<dyn Folder> + Send + Sync>;

/// The additions of a domain to the folder of one group; none if the group is not of the domain.
pub trait GroupDomain: Send + Sync {
    /// Returns the view of a name. Members of the group take precedence.
    ///
    /// # Errors
    /// Fails if what determines the view cannot be read.
    fn view(&self, name: &str) -> Result<Option<Node>>;

    /// Returns the names of the views that listings show, as far as the options want them.
    ///
    /// # Errors
    /// As for [`GroupDomain::view`].
    fn listed(&self) -> Result<Vec<&'static str>> {
        Ok(Vec::new())
    }

    /// Returns `zarr/` in the form of the domain, and whether the result is final.
    ///
    /// # Errors
    /// As for [`GroupDomain::view`].
    fn zarr(&self, _plain: &PlainZarr) -> Result<(Option<Arc<dyn Folder>>, bool)> {
        Ok((None, true))
    }

    /// Returns other options for the members in `zarr/`.
    ///
    /// # Errors
    /// As for [`GroupDomain::view`].
    fn options_in_zarr(&self) -> Result<Option<Arc<OpenOptions>>> {
        Ok(None)
    }

    /// Adds the lines about its views to those of `.tilefs/views.txt`.
    ///
    /// # Errors
    /// Fails if the metadata of the group cannot be read.
    fn describe_views(&self, _views: &mut GroupViews) -> Result<()> {
        Ok(())
    }

    /// Adds uses of the views to README.txt. If `may_open` is false, the group has too many members to open them for that.
    ///
    /// # Errors
    /// As for [`GroupDomain::describe_views`].
    fn describe_uses(&self, _uses: &mut GroupUses, _may_open: bool) -> Result<()> {
        Ok(())
    }

    /// Adds files to those of `.group/group.json`.
    fn describe_files(&self, _files: &mut GroupFiles) {}
}

/// The lines of `.tilefs/views.txt` about the views of domains.
pub struct GroupViews {
    /// The line about `zarr/`, unless it is plain.
    pub zarr: Option<String>,
    pub lines: String,
    /// Whether the lines are final.
    pub lasts: bool,
}

/// What README.txt says about the views of domains.
pub struct GroupUses {
    /// The form of the whole group.
    pub whole: String,
    pub views: String,
    /// Whether the text is final.
    pub lasts: bool,
}

/// The files of domains in `.group/group.json`.
pub struct GroupFiles {
    pub files: Vec<Value>,
    pub not_listed: Vec<Value>,
    /// Whether the lists are final.
    pub lasts: bool,
}

/// Returns what the domains add to the folder of a group.
pub fn of_group(group: &ShownGroup) -> Arc<[Box<dyn GroupDomain>]> {
    of_group_among(&DOMAINS, group)
}

fn of_group_among(domains: &[Domain], group: &ShownGroup) -> Arc<[Box<dyn GroupDomain>]> {
    domains.iter().filter_map(|domain| Some((domain.of_group?)(group.clone()))).collect()
}

/// Returns the form of an array; it is plain if the array is of no domain.
pub fn array_form(schema: &ArraySchema) -> ArrayForm {
    DOMAINS.iter().find_map(|domain| (domain.array_form?)(schema)).unwrap_or_default()
}

/// Returns the form of an array that has another one in its group.
///
/// # Errors
/// Fails if what determines that cannot be read.
pub fn member_form(group: &Group, array: &Arc<Array>) -> Result<Option<ArrayForm>> {
    first(|domain| domain.member_form.map_or(Ok(None), |of| of(group, array)))
}

/// Adds the files of domains to the folder of an array.
///
/// # Errors
/// As for [`member_form`].
pub fn add_to_array(builder: &mut FolderBuilder, array: &Arc<Array>, modified: SystemTime) -> Result<()> {
    DOMAINS.iter().filter_map(|domain| domain.add_to_array).try_for_each(|add| add(builder, array, modified))
}

/// Returns the lengths of a matrix, if a domain stores them.
///
/// # Errors
/// As for [`member_form`].
pub fn matrix_lengths(array: &Array) -> Result<Option<[u64; 2]>> {
    first(|domain| domain.matrix_lengths.map_or(Ok(None), |of| of(array)))
}

/// Returns the first result that a domain has.
fn first<T>(find: impl Fn(&Domain) -> Result<Option<T>>) -> Result<Option<T>> {
    for domain in &DOMAINS {
        if let Some(found) = find(domain)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::{Context, TimeWindow};
    use tilefs_storage::LocalStorage;

    use super::*;
    use crate::node::lazy::LazyFile;
    use crate::texts::view_line;

    const COUNT: &str = "count.txt";

    /// A group of a domain whose groups all have a file with the number of their members.
    struct CountedGroup(ShownGroup);

    impl GroupDomain for CountedGroup {
        fn view(&self, name: &str) -> Result<Option<Node>> {
            let group = self.0.group.clone();
            let text = move || Ok(format!("{}\n", group.members()?.len()));
            Ok((name == COUNT).then(|| Node::File(Arc::new(LazyFile::text(self.0.modified, text)))))
        }

        fn describe_views(&self, views: &mut GroupViews) -> Result<()> {
            views.lines += &view_line(COUNT, "the number of members");
            Ok(())
        }
    }

    /// The row that such a domain has in the list.
    const COUNTED: Domain = Domain { of_group: Some(|group| Box::new(CountedGroup(group))), ..Domain::NONE };

    #[test]
    fn a_domain_is_its_implementation_and_its_row() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("__group")).unwrap();
        let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 1 << 20, 1, None));
        let group = Arc::new(Group::open(context, &folder.path().into(), TimeWindow::until(u64::MAX)));
        let shown = ShownGroup { group, options: Arc::default(), modified: SystemTime::UNIX_EPOCH };
        let domains = of_group_among(&[Domain::NONE, COUNTED], &shown);
        assert_eq!(domains.len(), 1);
        assert!(domains[0].view("other.txt").unwrap().is_none());
        let Some(Node::File(file)) = domains[0].view(COUNT).unwrap() else { panic!("the view is no file") };
        let content = file.open().unwrap();
        let mut text = vec![0; content.len() as usize];
        content.read_at(0, &mut text).unwrap();
        assert_eq!(text, b"0\n");
        let mut views = GroupViews { zarr: None, lines: String::new(), lasts: true };
        domains[0].describe_views(&mut views).unwrap();
        assert_eq!(views.lines, view_line(COUNT, "the number of members"));
    }
}
