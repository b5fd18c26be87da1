//! Listings of folders, made in pieces: as HTML for people and programs that follow links, and as JSON in the form of
//! nginx's `autoindex_format json`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

use hyper::body::Bytes;
use tilefs_base::markup::escape_for_page;
use tilefs_vfs::node::recent::Found;
use tilefs_vfs::{EntryKind, File, Folder, Node};

use crate::serve::connection::body::Pieces;
use crate::serve::http::path::{append, encode_name};
use crate::serve::http::refusal::{NodeFailure, Refusal};
use crate::serve::http::validators;
use crate::serve::site::Site;

/// Folders with more entries are listed without sizes and times, as `ls` does, because each entry takes a lookup.
const MAX_SIZED: usize = 1000;

/// Maximum number of entries of a piece, without and with lookups.
const ENTRIES: usize = 1000;
const LOOKED_UP: usize = 32;

/// The units of sizes for people, from 1000 bytes on.
const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// A piece of this many bytes gets no further entry, because an entry may contain a long path or name.
pub const ENOUGH: usize = 64 << 10;

/// The members of a folder, in the order of the tree.
pub struct Members {
    site: Arc<Site>,
    folder: Arc<dyn Folder>,
    /// The path of the folder in the tree.
    path: String,
    entries: std::vec::IntoIter<ListedMember>,
    /// Whether files are looked up.
    with_facts: bool,
}

/// A line of a listing.
pub struct ListedMember {
    pub name: String,
    pub kind: EntryKind,
    /// `None` for a folder, and if the file was not looked up or the lookup failed.
    pub facts: Option<Facts>,
    /// Whether the lookup failed.
    pub has_failed: bool,
}

/// The facts from looking up a file.
pub struct Facts {
    pub file: Arc<dyn File>,
    pub size: u64,
    pub modified: SystemTime,
}

impl Members {
    /// Lists a folder. With `always_with_facts`, files are looked up however many there are.
    ///
    /// # Errors
    /// Those of [`Folder::list`].
    pub fn of(site: &Arc<Site>, found: &Found, path: String, always_with_facts: bool) -> Result<Self, NodeFailure> {
        let Node::Folder(folder) = &found.node else { return Err(NodeFailure::Absent(None)) };
        let entries: Vec<ListedMember> = folder
            .list()?
            .into_iter()
            .filter(|entry| {
                let is_name = !matches!(entry.name.as_str(), "" | "." | "..") && !entry.name.contains(['/', '\0']);
                if !is_name {
                    let error = format!("{:?} cannot be the name of a file and is not listed", entry.name);
                    site.errors.report(&format!("list of {path}"), &error);
                }
                is_name
            })
            .map(|entry| ListedMember { name: entry.name, kind: entry.kind, facts: None, has_failed: false })
            .collect();
        let with_facts = always_with_facts || entries.len() <= MAX_SIZED;
        Ok(Members { site: site.clone(), folder: folder.clone(), path, entries: entries.into_iter(), with_facts })
    }

    /// Leaves at most so many members, spread evenly, the first included.
    pub fn spread(mut self, most: usize) -> Self {
        let count = self.entries.len();
        if count > most {
            let is_left = |place: usize| place * most % count < most;
            let entries = self.entries.enumerate().filter(|(place, _)| is_left(*place)).map(|(_, entry)| entry);
            self.entries = entries.collect::<Vec<_>>().into_iter();
        }
        self
    }

    /// Returns whether there are so few members that files are looked up.
    fn are_few(&self) -> bool {
        self.with_facts
    }

    /// Returns the maximum number of members of a piece.
    pub fn most_in_piece(&self) -> usize {
        if self.with_facts { LOOKED_UP } else { ENTRIES }
    }

    /// Returns the next member; `None` at the end.
    ///
    /// # Errors
    /// Only [`Refusal::Cancelled`]: a member that cannot be looked up is marked, and the log says why.
    pub fn next(&mut self) -> Result<Option<ListedMember>, Refusal> {
        let Some(mut member) = self.entries.next() else { return Ok(None) };
        if self.with_facts && member.kind == EntryKind::File {
            let doing = || format!("look-up of {}/{}", self.path, member.name);
            match self.site.attempt(doing, || facts(&*self.folder, &member.name)) {
                Ok(facts) => member.facts = facts,
                Err(Refusal::Cancelled) => return Err(Refusal::Cancelled),
                Err(_) => member.has_failed = true,
            }
        }
        Ok(Some(member))
    }
}

fn facts(folder: &dyn Folder, name: &str) -> Result<Option<Facts>, NodeFailure> {
    let Some(Node::File(file)) = folder.lookup(name)? else { return Ok(None) };
    Ok(Some(Facts { size: file.len()?, modified: file.modified(), file }))
}

/// The form of a listing.
pub enum ListingForm {
    /// Rows of a table.
    Html,
    Json,
}

/// A function that makes the text after the members when it is needed; its argument says whether these are few.
type MakeText = Box<dyn FnOnce(bool) -> String + Send>;

/// A listing as the bytes of a reply.
pub struct ListingPieces {
    members: Members,
    form: ListingForm,
    /// The text before the first member; `None` once it has been returned.
    before: Option<String>,
    /// Makes the text after the last one; `None` once it has been returned.
    after: Option<MakeText>,
    has_members: bool,
}

impl ListingPieces {
    /// Creates a listing with the text around it. That before it is sent at once, so that a browser can ask for what it
    /// names while files are looked up.
    pub fn new(
        members: Members,
        form: ListingForm,
        before: String,
        after: impl FnOnce(bool) -> String + Send + 'static,
    ) -> Self {
        ListingPieces { members, form, before: Some(before), after: Some(Box::new(after)), has_members: false }
    }
}

impl Pieces for ListingPieces {
    fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.after.is_none() {
            return Ok(None);
        }
        if let Some(before) = self.before.take() {
            return Ok(Some(before.into()));
        }
        let mut text = String::new();
        let members = &mut self.members;
        for _ in 0..members.most_in_piece() {
            let Some(member) = members.next()? else {
                text += &self.after.take().map(|make| make(members.are_few())).unwrap_or_default();
                break;
            };
            match &self.form {
                ListingForm::Html => row(&member, &mut text),
                ListingForm::Json => {
                    text += if self.has_members { ",\n" } else { "\n" };
                    object(&member, &mut text);
                }
            }
            self.has_members = true;
            if text.len() >= ENOUGH {
                break;
            }
        }
        Ok(Some(text.into()))
    }
}

/// Appends a row of a table.
fn row(member: &ListedMember, out: &mut String) {
    let slash = if member.kind == EntryKind::Folder { "/" } else { "" };
    out.push_str("<tr><td><a href=\"");
    encode_name(&member.name, out);
    append!(out, "{slash}\">{}{slash}</a></td>", escape_for_page(&member.name));
    match &member.facts {
        Some(facts) => {
            let modified = validators::date(facts.modified).unwrap_or_default();
            append!(out, "<td>{}</td><td>{modified}</td></tr>\n", human(facts.size));
        }
        None if member.has_failed => out.push_str("<td>?</td><td>cannot be read</td></tr>\n"),
        None => out.push_str("<td></td><td></td></tr>\n"),
    }
}

/// Returns a size as people read it.
fn human(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let (mut value, mut unit) = (bytes as f64 / 1000.0, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Appends a JSON object: `name`, `type`, and if known `mtime` and `size`.
fn object(member: &ListedMember, out: &mut String) {
    let kind = if member.kind == EntryKind::Folder { "directory" } else { "file" };
    append!(out, "{{\"name\":{},\"type\":\"{kind}\"", serde_json::Value::from(member.name.as_str()));
    if let Some(facts) = &member.facts {
        if let Some(date) = validators::date(facts.modified) {
            append!(out, ",\"mtime\":\"{date}\"");
        }
        append!(out, ",\"size\":{}", facts.size);
    }
    out.push('}');
}
