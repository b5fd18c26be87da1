//! PROPFIND of read-only WebDAV: the properties of a file, or of a folder and its members, made in pieces.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::body::Bytes;
use tilefs_vfs::node::recent::Found;
use tilefs_vfs::{EntryKind, Node};

use super::listing::{ENOUGH, ListedMember, Members};
use super::properties::{AFTER, Asked, Resource};
use crate::serve::connection::body::Pieces;
use crate::serve::http::content_type;
use crate::serve::http::path::{TreePath, encode_name};
use crate::serve::http::proxy::Root;
use crate::serve::http::refusal::{NodeFailure, Refusal};
use crate::serve::http::validators;
use crate::serve::site::{Site, Snapshot, modified};

/// The depth of a PROPFIND.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The file or folder itself.
    Itself,
    /// The file or folder, and its members.
    Members,
    /// The file or folder, and everything below it. Refused, because there is no end of slices.
    Endless,
}

impl Depth {
    /// Parses the header `Depth`; without one, the depth is endless.
    ///
    /// # Errors
    /// If it has another value.
    pub fn of(headers: &HeaderMap) -> Result<Self, &'static str> {
        match headers.get("depth").map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
            Some(b"0") => Ok(Depth::Itself),
            Some(b"1") => Ok(Depth::Members),
            None | Some(b"infinity") => Ok(Depth::Endless),
            Some(_) => Err("Depth is neither 0 nor 1 nor infinity"),
        }
    }
}

/// The reply to an endless PROPFIND.
pub const FINITE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
                          <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";

/// The properties of a file or folder, and of the members of a folder, as the bytes of a reply.
pub struct PropertyPieces {
    asked: Asked,
    snapshot: Arc<Snapshot>,
    found: Found,
    /// The URL as the reply has it, with a slash at the end for a folder.
    url: String,
    /// The path in the tree.
    path: String,
    /// The beginning of the reply with the file or folder itself; `None` once it has been given.
    before: Option<String>,
    /// The members that are left; `None` at the end.
    members: Option<Members>,
}

impl PropertyPieces {
    /// Creates the reply about a node.
    ///
    /// # Errors
    /// Those of looking up a file or listing a folder.
    pub fn new(
        site: &Arc<Site>,
        snapshot: &Arc<Snapshot>,
        (path, root): (&TreePath, &Root),
        found: Found,
        asked: Asked,
        depth: Depth,
    ) -> Result<Self, NodeFailure> {
        let is_folder = matches!(found.node, Node::Folder(_));
        let mut resource = Resource {
            href: root.url_of(path, is_folder),
            name: path.names().last().cloned().unwrap_or_default(),
            is_folder,
            modified: validators::date(modified(&found.node)),
            ..Resource::default()
        };
        if let Node::File(file) = &found.node {
            let length = file.len()?;
            resource.length = Some(length);
            resource.etag = snapshot.etag(&path.text(), &found, length);
            resource.content_type = Some(content_type::of_file(&resource.name));
        }
        let mut before = asked.before();
        asked.respond(&resource, &mut before);
        let members = if is_folder && depth == Depth::Members {
            Some(Members::of(site, &found, path.text(), true)?)
        } else {
            before += AFTER;
            None
        };
        let (snapshot, url, path) = (snapshot.clone(), resource.href, path.text());
        Ok(PropertyPieces { asked, snapshot, found, url, path, before: Some(before), members })
    }

    fn resource(&self, member: ListedMember) -> Resource {
        let mut href = self.url.clone();
        encode_name(&member.name, &mut href);
        let is_folder = member.kind == EntryKind::Folder;
        if is_folder {
            href.push('/');
        }
        let mut resource = Resource { href, is_folder, has_failed: member.has_failed, ..Resource::default() };
        if let Some(facts) = &member.facts {
            let path =
                if self.path.is_empty() { member.name.clone() } else { format!("{}/{}", self.path, member.name) };
            resource.length = Some(facts.size);
            resource.modified = validators::date(facts.modified);
            resource.etag = self.snapshot.etag_within(&path, &self.found, &facts.file, facts.size);
            resource.content_type = Some(content_type::of_file(&member.name));
        }
        resource.name = member.name;
        resource
    }
}

impl Pieces for PropertyPieces {
    fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        if let Some(before) = self.before.take() {
            return Ok(Some(before.into()));
        }
        let Some(mut members) = self.members.take() else { return Ok(None) };
        let mut text = String::new();
        for _ in 0..members.most_in_piece() {
            let Some(member) = members.next()? else {
                text += AFTER;
                return Ok(Some(text.into()));
            };
            self.asked.respond(&self.resource(member), &mut text);
            if text.len() >= ENOUGH {
                break;
            }
        }
        self.members = Some(members);
        Ok(Some(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_depth_is_0_or_1_or_refused() {
        let depth = |value: Option<&'static str>| {
            let headers = value.map(|value| ("depth".parse().unwrap(), value.parse().unwrap()));
            Depth::of(&headers.into_iter().collect())
        };
        assert_eq!(depth(Some("0")), Ok(Depth::Itself));
        assert_eq!(depth(Some("1")), Ok(Depth::Members));
        assert_eq!(depth(Some("Infinity")), Ok(Depth::Endless));
        assert_eq!(depth(None), Ok(Depth::Endless));
        assert!(depth(Some("2")).is_err() && depth(Some("")).is_err());
    }
}
