//! The views of a group: each is one form in which all of the group can be read. `.tilefs/views.txt` and the manual's
//! section about groups are made from them.

use crate::texts::view_line;

/// The path of the view that every group has.
const ZARR: &str = "zarr";

/// A form in which a group can be read.
pub struct GroupView {
    /// Its path; words in capitals stand for names.
    pub path: &'static str,
    /// The content of its files, and the programs that read them.
    pub reader: &'static str,
    /// The data that its files cannot hold, in words for the manual.
    pub lacks: &'static str,
}

/// `zarr/` of a group, unless a domain gives it another form.
pub const PLAIN_ZARR: GroupView = GroupView {
    path: ZARR,
    reader: "a Zarr group of all arrays (open the folder): xarray, zarr, dask, napari",
    lacks: "missing members, and what zarr/ of an array cannot hold",
};

/// The files about the group itself.
pub const ABOUT_GROUP: [GroupView; 3] = [
    GroupView {
        path: ".group/members.tsv",
        reader: "the members and where they are",
        lacks: "control characters, which are escaped",
    },
    GroupView {
        path: ".group/group.json",
        reader: "all information about the group: jq",
        lacks: "the longest values of metadata, which .group/meta/ has",
    },
    GroupView { path: ".group/meta/KEY", reader: "metadata", lacks: "types, which .group/group.json has" },
];

/// The lines of `.tilefs/views.txt` about the views of domains.
pub struct DescribedViews {
    /// The line about `zarr/`, unless it is plain.
    zarr: Option<String>,
    lines: String,
    /// Whether the lines are final.
    lasts: bool,
}

impl DescribedViews {
    /// Describes no view.
    pub fn none() -> Self {
        DescribedViews { zarr: None, lines: String::new(), lasts: true }
    }

    /// Returns the lines, that about `zarr/` first, and whether they are final.
    pub fn text(self) -> (String, bool) {
        let zarr = self.zarr.unwrap_or_else(|| line_of(&PLAIN_ZARR));
        (zarr + &self.lines, self.lasts)
    }

    /// Adds views that the group has.
    pub fn add(&mut self, views: &[GroupView]) {
        views.iter().for_each(|view| self.add_at(view.path, view));
    }

    /// Adds a view that the group has at a path in which names replace the capitals.
    pub fn add_at(&mut self, path: &str, view: &GroupView) {
        let line = view_line(path, view.reader);
        match view.path {
            ZARR => self.zarr = Some(line),
            _ => self.lines += &line,
        }
    }

    /// Adds the path of a view that the group does not have, with the reason.
    pub fn add_absent(&mut self, path: &str, reason: &str, is_final: bool) {
        self.lasts &= is_final;
        self.lines += &view_line(path, &format!("not here: {reason}"));
    }

    /// Notes that other lines may follow later.
    pub fn may_change(&mut self) {
        self.lasts = false;
    }
}

/// Returns the line about a view.
pub fn line_of(view: &GroupView) -> String {
    view_line(view.path, view.reader)
}
