//! The commands of README.txt that read a file of a view: they work as printed, in this folder, with its real names.

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::schema::{ArraySchema, Attribute};
use tilefs_vfs::node::quoting::in_line;

use crate::views::facts::ViewFacts;
use crate::views::files::{FileFacts, Files};

/// A purpose, and the command that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub purpose: String,
    pub command: String,
}

impl Command {
    pub fn new(purpose: impl Into<String>, command: String) -> Self {
        Command { purpose: purpose.into(), command }
    }
}

/// Finds the files that each command needs.
pub struct FileFinder<'d> {
    pub schema: &'d ArraySchema,
    pub files: &'d Files,
    /// The folder of the files, with a final slash; empty for the current folder.
    pub folder: &'static str,
    /// The folder of the files with meaningful values: those of a raster without its padding.
    pub values: String,
    /// The form of the Zarr group as annotated data, if it can be opened as such.
    pub annotated: Option<&'static str>,
}

impl<'d> FileFinder<'d> {
    /// Returns the path of a file that is explanatory, or that omits padding itself.
    pub fn path(&self, file: &FileFacts) -> String {
        format!("{}{}", self.folder, file.path)
    }

    /// Returns the path of a file of values.
    pub fn values(&self, file: &FileFacts) -> String {
        format!("{}{}", self.values, file.path)
    }

    /// Returns the first attribute that has a file of this view and fits, and the file. Attributes with codes come
    /// last.
    pub fn find(&self, view: &ViewFacts, fits: impl Fn(&Attribute) -> bool) -> Option<(&'d Attribute, &'d FileFacts)> {
        let attributes = || self.schema.attributes.iter().filter(|one| fits(one));
        let values = attributes().filter(|one| one.enumeration.is_none());
        values.chain(attributes()).find_map(|attribute| {
            let mut files = self.files.of_field(&attribute.name);
            let file = files.find(|file| file.view == view && !file.is_slow());
            file.map(|file| (attribute, file))
        })
    }

    /// Returns the first file of this view.
    pub fn any(&self, view: &ViewFacts) -> Option<&'d FileFacts> {
        self.files.iter().find(|file| file.view == view && !file.is_slow())
    }
}

/// Returns the attribute's name in a sentence.
pub fn called(attribute: &Attribute) -> String {
    match attribute.name.as_str() {
        "" => "the attribute".to_owned(),
        name => in_line(name),
    }
}

pub fn is_number(attribute: &Attribute) -> bool {
    attribute.datatype.kind() != Kind::Bytes && !attribute.is_variable()
}

/// Returns the option of `od` that prints values of a type.
pub fn od(datatype: Datatype) -> Option<String> {
    let letter = match datatype.kind() {
        Kind::Signed => 'd',
        Kind::Unsigned => 'u',
        Kind::Float => 'f',
        Kind::Bytes => return None,
    };
    Some(format!("-t{letter}{}", datatype.size()))
}
