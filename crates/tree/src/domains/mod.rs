//! Data models that libraries of a field build on arrays and groups, one folder each. The rest of the tree knows a domain
//! only by its row in [`DOMAINS`].

pub mod bioimaging;
pub mod cf;
mod domain;
pub mod filestore;
mod gdal;
pub mod group_view;
pub mod soma;
pub mod vcf;

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_format::schema::ArraySchema;
use tilefs_reader::array::OpenedArray;

use crate::fields::array_form::ArrayForm;
use crate::shown::{ArrayOfDomain, ShownViews};
use crate::views::builder::FolderBuilder;

pub use domain::{Domain, GroupDomain, GroupFiles, GroupUses, PlainZarr, ShownGroup};
pub use group_view::{DescribedViews, GroupView};
pub use vcf::lists::{VariantLists, VariantReference};

/// All domains. The first one that has an own form of a folder takes precedence, and texts are in this order.
pub const DOMAINS: [Domain; 6] = [
    soma::group::DOMAIN,
    cf::group::DOMAIN,
    vcf::group::DOMAIN,
    bioimaging::group::DOMAIN,
    filestore::DOMAIN,
    gdal::DOMAIN,
];

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

/// Adds the files of domains to the folder of an array.
///
/// # Errors
/// Fails if what determines them cannot be read.
pub fn add_to_array(builder: &mut FolderBuilder, array: &Arc<OpenedArray>, modified: SystemTime) -> Result<()> {
    DOMAINS.iter().filter_map(|domain| domain.add_to_array).try_for_each(|add| add(builder, array, modified))
}

/// Returns the views that an array lists: also the one that it is stored for. Reads nothing.
pub fn shown_of_array(array: &Arc<OpenedArray>, shown: &ShownViews) -> ShownViews {
    shown.clone().of_array(Arc::new(ListingArray(array.clone())))
}

/// An array whose domain is determined when the array is listed.
struct ListingArray(Arc<OpenedArray>);

impl ArrayOfDomain for ListingArray {
    fn own_view(&self) -> (Option<&'static str>, bool) {
        // Files of the array report the damage.
        first(|domain| domain.own_view.map_or(Ok(None), |of| of(&self.0))).map_or((None, false), |word| (word, true))
    }
}

/// Returns the lengths of a matrix, if a domain stores them.
///
/// # Errors
/// As for [`add_to_array`].
pub fn matrix_lengths(array: &OpenedArray) -> Result<Option<[u64; 2]>> {
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
    use tilefs_reader::group::OpenedGroup;
    use tilefs_storage::LocalStorage;

    use super::group_view::{PLAIN_ZARR, line_of};
    use super::*;
    use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
    use tilefs_vfs::node::{Folder, Node};

    const COUNT: &str = "count.txt";

    /// The view of such a group.
    const VIEW: GroupView = GroupView { path: COUNT, reader: "the number of members", lacks: "their names" };

    /// A group of a domain whose groups all have a file with the number of their members.
    struct CountedGroup(ShownGroup);

    impl GroupDomain for CountedGroup {
        fn view(&self, name: &str) -> Result<Option<Node>> {
            let group = self.0.group.clone();
            let text = move || Ok(format!("{}\n", group.members()?.len()));
            Ok((name == COUNT).then(|| Node::File(Arc::new(LazyFile::text(self.0.modified, text)))))
        }

        fn describe_views(&self, views: &mut DescribedViews) -> Result<()> {
            views.add(&[VIEW]);
            Ok(())
        }
    }

    /// The row that such a domain has in the list.
    const COUNTED: Domain = Domain {
        groups: "Counted groups",
        group_views: &[VIEW],
        of_group: Some(|group| Box::new(CountedGroup(group))),
        ..Domain::NONE
    };

    #[test]
    fn a_domain_is_its_implementation_and_its_row() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("__group")).unwrap();
        let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 1 << 20, 1, None));
        let group = Arc::new(OpenedGroup::open(context, &folder.path().into(), TimeWindow::until(u64::MAX)));
        let modified = SystemTime::UNIX_EPOCH;
        let members = Arc::new(move || Arc::new(FixedFolder::new(modified)) as Arc<dyn Folder>);
        let shown = ShownGroup { group, options: Arc::default(), modified, members };
        let domains = of_group_among(&[Domain::NONE, COUNTED], &shown);
        assert_eq!(domains.len(), 1);
        assert!(domains[0].view("other.txt").unwrap().is_none());
        let Some(Node::File(file)) = domains[0].view(COUNT).unwrap() else { panic!("the view is no file") };
        let content = file.open().unwrap();
        let mut text = vec![0; content.len() as usize];
        content.read_at(0, &mut text).unwrap();
        assert_eq!(text, b"0\n");
        let mut views = DescribedViews::none();
        domains[0].describe_views(&mut views).unwrap();
        let lines = [&PLAIN_ZARR, &VIEW].map(line_of).concat();
        assert_eq!(views.text(), (lines, true));
    }
    #[test]
    fn each_view_of_a_group_says_what_it_cannot_hold() {
        for domain in DOMAINS {
            assert_eq!(domain.of_group.is_some(), !domain.group_views.is_empty(), "{}", domain.groups);
            assert_eq!(domain.of_group.is_some(), !domain.groups.is_empty());
            for view in domain.group_views {
                assert!(!view.reader.is_empty() && !view.lacks.is_empty(), "{}", view.path);
            }
        }
    }
}
