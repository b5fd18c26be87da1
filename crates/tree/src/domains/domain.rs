//! The interface of a domain: its additions to groups and arrays.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use tilefs_base::error::Result;
use tilefs_export::zarr::ZarrVersion;
use tilefs_format::schema::ArraySchema;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::group::OpenedGroup;
use tilefs_vfs::node::{Folder, Node};

use crate::domains::group_view::{DescribedViews, GroupView};
use crate::fields::array_form::ArrayForm;
use crate::options::TreeOptions;
use crate::views::builder::FolderBuilder;

/// Adds files of a domain to the folder of an array that was last modified at a time.
pub type AddToArray = fn(&mut FolderBuilder, &Arc<OpenedArray>, SystemTime) -> Result<()>;

/// Returns the word of the view that an array is stored for, if the array is of the domain.
pub type OwnView = fn(&OpenedArray) -> Result<Option<&'static str>>;

/// Returns the height and the width of a matrix that a domain stores in an array.
pub type MatrixLengths = fn(&OpenedArray) -> Result<Option<[u64; 2]>>;

/// The additions of a domain to groups and arrays; each function decides whether an object is of the domain.
#[derive(Clone, Copy)]
pub struct Domain {
    /// Its groups, as the manual calls them.
    pub groups: &'static str,
    /// The views of its groups.
    pub group_views: &'static [GroupView],
    /// Makes what it adds to the folder of a group. Reads nothing.
    pub of_group: Option<fn(ShownGroup) -> Box<dyn GroupDomain>>,
    /// Returns the form of an array.
    pub array_form: Option<fn(&ArraySchema) -> Option<ArrayForm>>,
    /// Adds files to the folder of an array.
    pub add_to_array: Option<AddToArray>,
    /// Returns the word of `--show` of the view that an array is stored for.
    pub own_view: Option<OwnView>,
    /// Returns the lengths of a matrix, if the domain stores them.
    pub matrix_lengths: Option<MatrixLengths>,
}

impl Domain {
    /// A domain that adds nothing.
    pub const NONE: Domain = Domain {
        groups: "",
        group_views: &[],
        of_group: None,
        array_form: None,
        add_to_array: None,
        own_view: None,
        matrix_lengths: None,
    };
}

/// A group whose folder is shown.
#[derive(Clone)]
pub struct ShownGroup {
    pub group: Arc<OpenedGroup>,
    pub options: Arc<TreeOptions>,
    pub modified: SystemTime,
    /// Makes the folder of its members.
    pub members: Arc<dyn Fn() -> Arc<dyn Folder> + Send + Sync>,
}

/// Makes the group of the members in `zarr/` or `zarr2/`, as it is without a domain; its argument is the reason why it
/// is not in the form of a domain, if that could be expected.
pub type PlainZarr = Arc<dyn Fn(Option<String>) -> Arc<dyn Folder> + Send + Sync>;

/// The additions of a domain to the folder of one group; none if the group is not of the domain.
pub trait GroupDomain: Send + Sync {
    /// Returns the view of a name. Members of the group take precedence.
    ///
    /// # Errors
    /// Fails if what determines the view cannot be read.
    fn view(&self, name: &str) -> Result<Option<Node>>;

    /// Returns the names of the views that listings show, as far as the options want them, and whether the result is
    /// final. One of them at least holds the values of the members, whose folders report damage.
    fn listed(&self) -> (Vec<&'static str>, bool) {
        (Vec::new(), true)
    }

    /// Returns the form of an array that has another one in the group.
    ///
    /// # Errors
    /// As for [`GroupDomain::view`].
    fn member_form(&self, _array: &Arc<OpenedArray>) -> Result<Option<ArrayForm>> {
        Ok(None)
    }

    /// Returns `zarr/` or `zarr2/` in the form of the domain, and whether the result is final.
    ///
    /// # Errors
    /// As for [`GroupDomain::view`].
    fn zarr(&self, _version: ZarrVersion, _plain: &PlainZarr) -> Result<(Option<Arc<dyn Folder>>, bool)> {
        Ok((None, true))
    }

    /// Returns other options for the members in `zarr/`.
    ///
    /// # Errors
    /// As for [`GroupDomain::view`].
    fn options_in_zarr(&self) -> Result<Option<Arc<TreeOptions>>> {
        Ok(None)
    }

    /// Adds those of [`Domain::group_views`] that the group has to the views of `.tilefs/views.txt`.
    ///
    /// # Errors
    /// Fails if the metadata of the group cannot be read.
    fn describe_views(&self, _views: &mut DescribedViews) -> Result<()> {
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
