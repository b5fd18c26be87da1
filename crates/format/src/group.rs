//! Group details: the members of a group, which are arrays and groups (the format's "Group" page).

use std::collections::BTreeMap;

use tilefs_base::error::{Error, Locate, Result};

use super::cursor::Cursor;
use super::folder::ObjectKind;
use super::name::{NameForm, TimestampedName};
use super::version::other_version;

/// The stored bytes of the smallest member: version, type, two flags, the length of its URI.
const MIN_BYTES: usize = 15;

/// One member of a group, or its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The kind of the member, if it is stored; otherwise the folder of the member has to be inspected.
    pub kind: Option<ObjectKind>,
    /// Whether `uri` is relative to the group's folder.
    pub relative: bool,
    /// Untrusted: the path may lead anywhere. Invalid UTF-8 is replaced by U+FFFD, as in the name.
    pub uri: String,
    /// The member's name in the group, if it has one.
    pub name: Option<String>,
    /// Whether the entry removes the member (version 2).
    pub deleted: bool,
    /// The identity of the member: the bytes of its name if it has one, else of its URI.
    pub key: Vec<u8>,
}

/// Reads the payload of one file in `__group`: the members that it sets or removes.
///
/// # Errors
/// [`Error::Unsupported`] for versions later than 2; [`Error::Damaged`] if there are too few or too many bytes.
pub fn parse_group_details(payload: &[u8]) -> Result<Vec<GroupMember>> {
    let mut cursor = Cursor::new(payload);
    check_version(cursor.u32("version")?, "group details")?;
    let count = cursor.u64("number of members")?;
    let count = cursor.checked_count(count, MIN_BYTES, "number of members")?;
    let mut members = Vec::new();
    for _ in 0..count {
        members.push(parse_member(&mut cursor)?);
    }
    cursor.expect_end("end of group details")?;
    Ok(members)
}

fn parse_member(cursor: &mut Cursor<'_>) -> Result<GroupMember> {
    let version = cursor.u32("member version")?;
    check_version(version, "group member")?;
    let kind = match cursor.u8("member type")? {
        0 => None,
        1 => Some(ObjectKind::Group),
        2 => Some(ObjectKind::Array),
        other => return Err(Error::unsupported(format!("group member of type {other}"))),
    };
    let relative = cursor.u8("relative URI")? != 0;
    let uri = cursor.str64("member URI")?;
    let name = if cursor.u8("name set")? != 0 { Some(cursor.str64("member name")?) } else { None };
    let deleted = version >= 2 && cursor.u8("deleted")? != 0;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let key = name.unwrap_or(uri).to_owned();
    Ok(GroupMember { kind, relative, uri: text(uri), name: name.map(text), deleted, key })
}

fn check_version(version: u32, what: &str) -> Result<()> {
    match version {
        1 | 2 => Ok(()),
        other => Err(other_version(what, other, 1..=2)).in_field("version"),
    }
}

/// Returns the members of a group by key, from its details files in the order of their start times.
///
/// A details file of version 1 lists all members and replaces what earlier files say; a file of version 2 adds and
/// removes members. A group may have files of both versions.
pub fn members_in_force(files: Vec<(TimestampedName, Vec<GroupMember>)>) -> BTreeMap<Vec<u8>, GroupMember> {
    let mut members = BTreeMap::new();
    for (name, file) in files {
        if lists_all_members(&name) {
            members.clear();
        }
        for member in file {
            if member.deleted {
                members.remove(&member.key);
            } else {
                members.insert(member.key.clone(), member);
            }
        }
    }
    members
}

/// Returns whether a details file has version 1: its name has no version, or version 1.
fn lists_all_members(name: &TimestampedName) -> bool {
    name.form == NameForm::Two || (name.form == NameForm::Three && name.version == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(version: u32, members: &[GroupMember]) -> Vec<u8> {
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend((members.len() as u64).to_le_bytes());
        for member in members {
            bytes.extend(version.to_le_bytes());
            bytes.push(match member.kind {
                None => 0,
                Some(ObjectKind::Group) => 1,
                Some(ObjectKind::Array) => 2,
            });
            bytes.push(u8::from(member.relative));
            bytes.extend((member.uri.len() as u64).to_le_bytes());
            bytes.extend(member.uri.as_bytes());
            bytes.push(u8::from(member.name.is_some()));
            if let Some(name) = &member.name {
                bytes.extend((name.len() as u64).to_le_bytes());
                bytes.extend(name.as_bytes());
            }
            if version >= 2 {
                bytes.push(u8::from(member.deleted));
            }
        }
        bytes
    }

    fn member(name: &str, uri: &str, deleted: bool) -> GroupMember {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        let key = name.as_deref().unwrap_or(uri).into();
        GroupMember { kind: Some(ObjectKind::Array), relative: true, uri: uri.to_owned(), name, deleted, key }
    }

    fn name(time: u64, version: &str) -> TimestampedName {
        TimestampedName::parse(&format!("__{time}_{time}_{}{version}", "0".repeat(32))).unwrap().unwrap()
    }

    proptest! {
        #[test]
        fn reads_what_was_written(
            version in 1u32..=2,
            members in prop::collection::vec(("[a-z]{0,4}", "\\PC{0,8}", any::<bool>()), 0..5),
        ) {
            let members: Vec<_> =
                members.iter().map(|(name, uri, deleted)| member(name, uri, *deleted && version == 2)).collect();
            let bytes = write(version, &members);
            prop_assert_eq!(parse_group_details(&bytes).unwrap(), members);
            for cut in 0..bytes.len() {
                prop_assert!(parse_group_details(&bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn version_2_adds_and_removes() {
        let files = vec![
            (name(1, "_2"), vec![member("a", "x", false), member("", "y", false)]),
            (name(2, "_2"), vec![member("a", "z", false), member("", "y", true)]),
        ];
        let members = members_in_force(files);
        assert_eq!(members.into_values().collect::<Vec<_>>(), [member("a", "z", false)]);
    }

    #[test]
    fn version_1_replaces_all_members() {
        for version in ["", "_1"] {
            let files = vec![
                (name(1, version), vec![member("a", "x", false), member("b", "y", false)]),
                (name(2, version), vec![member("c", "z", false)]),
            ];
            assert_eq!(members_in_force(files).into_keys().collect::<Vec<_>>(), [b"c"]);
        }
    }

    #[test]
    fn names_that_are_not_utf8_stay_distinct() {
        let mut bytes = write(2, &[member("~", "x", false), member("|", "y", false), member("a", "~", false)]);
        for byte in &mut bytes {
            *byte = if matches!(*byte, b'~' | b'|') { *byte | 0x80 } else { *byte };
        }
        let members = members_in_force(vec![(name(1, "_2"), parse_group_details(&bytes).unwrap())]);
        let names: Vec<_> = members.values().map(|member| (member.name.as_deref().unwrap(), &*member.uri)).collect();
        assert_eq!(names, [("a", "\u{fffd}"), ("\u{fffd}", "y"), ("\u{fffd}", "x")]);
    }

    #[test]
    fn hostile_details_are_refused() {
        let mut bytes = write(2, &[member("a", "x", false)]);
        bytes[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(parse_group_details(&bytes), Err(Error::Damaged { .. })));
        assert!(matches!(parse_group_details(&write(3, &[])), Err(Error::Unsupported { .. })));
        let mut bytes = write(2, &[member("a", "x", false)]);
        bytes.push(0);
        assert!(parse_group_details(&bytes).is_err());
    }
}
