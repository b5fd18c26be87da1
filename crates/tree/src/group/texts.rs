//! The texts that describe a group: README.txt, `.group/members.tsv` and `.group/group.json`.

use std::fmt::Write;

use serde_json::{Map, Value, json};
use tilefs_base::error::Result;
use tilefs_format::folder::ObjectKind;
use tilefs_reader::array::{Metadata, object_kind};
use tilefs_reader::group::{MemberPlace, OpenedGroup, PlacedMember};
use tilefs_select::time::{extended, future_commits};
use tilefs_vfs::node::quoting::{heading, in_line, list_of_folders};

use crate::domains::group_view::{ABOUT_GROUP, DescribedViews, line_of};
use crate::domains::{GroupDomain, GroupFiles, GroupUses};
use crate::fields::meta;
use crate::group::listed_views::listed_views;
use crate::names::escape;
use crate::objects::members::NamedMembers;
use crate::texts::view_line;
use crate::wording::value::with_large_integers_as_text;

/// The state of a member whose folder exists but is not an array or a group.
pub const NEITHER: &str = "neither an array nor a group";

/// Maximum number of members for which README.txt states whether they are one dataset, which requires opening them.
const MAX_EXAMINED: usize = 64;

/// The row of one member in the tables.
struct Row {
    /// Its folder in the tree, or the name it would have if it is missing.
    name: String,
    kind: &'static str,
    uri: String,
    /// The folder in which it was found; empty if it is missing.
    path: String,
    /// `ok`, or the error.
    state: String,
    /// Whether the result is final; false if the folder could not be examined.
    lasts: bool,
}

/// Examines the folder of each member, without opening any.
fn rows(group: &OpenedGroup) -> Result<Vec<Row>> {
    let members = NamedMembers::new(group.members()?);
    let storage = &*group.context().storage;
    let row = |(member, name): (&PlacedMember, &Option<String>)| {
        let kind = member.place.path().map_or(Ok(None), |path| object_kind(storage, path));
        Row {
            name: name.clone().unwrap_or_else(|| escape(&member.name)),
            kind: kind.as_ref().ok().copied().flatten().or(member.kind).map_or("unknown", ObjectKind::name),
            uri: member.uri.clone(),
            path: member.place.path().map_or(String::new(), |path| path.to_string()),
            state: match (&member.place, &kind) {
                (MemberPlace::Missing(reason), _) => reason.clone(),
                (_, Err(error)) => error.to_string(),
                (_, Ok(None)) => NEITHER.to_owned(),
                (MemberPlace::Moved(_), _) => "ok: found by the end of its URI".to_owned(),
                (MemberPlace::Stored(_), _) => "ok".to_owned(),
            },
            lasts: kind.is_ok(),
        }
    };
    let rows = members.members.iter().zip(&members.names).map(row).collect();
    group.check_in_place()?;
    Ok(rows)
}

/// Returns one line for each member: its folder in the tree (or the name it would have if it is missing), its kind, its
/// URI as stored, the folder in which it was found, and `ok` or the error. Also returns whether the text is final.
pub fn members_tsv(group: &OpenedGroup) -> Result<(String, bool)> {
    let (mut lines, mut lasts) = ("name\ttype\turi\tpath\tstate\n".to_owned(), true);
    for row in rows(group)? {
        lasts &= row.lasts;
        lines += &[&row.name, row.kind, &row.uri, &row.path, &row.state].map(in_line).join("\t");
        lines.push('\n');
    }
    Ok((lines, lasts))
}

/// Returns all information about the group itself, for programs, and whether it is final.
pub fn group_json(group: &OpenedGroup, domains: &[Box<dyn GroupDomain>]) -> Result<(String, bool)> {
    let rows = rows(group)?;
    let lasts = rows.iter().all(|row| row.lasts);
    let mut files = GroupFiles { files: Vec::new(), not_listed: Vec::new(), lasts };
    domains.iter().for_each(|domain| domain.describe_files(&mut files));
    let GroupFiles { files, not_listed, lasts } = files;
    let members = rows
        .into_iter()
        .map(|row| json!({"name": row.name, "type": row.kind, "uri": row.uri, "path": row.path, "state": row.state}));
    let mut space = meta::MAX_JSON;
    let stored = group.metadata()?;
    let metadata: Map<String, Value> = stored
        .iter()
        .map(|(key, value)| {
            (String::from_utf8_lossy(key).into_owned(), Value::Object(meta::described(value, &mut space)))
        })
        .collect();
    let all = json!({
        "object": "group",
        "path": group.path().to_string(),
        "from": group.window().start,
        "at": group.window().end,
        "commits": group.commit_times()?,
        "members": members.collect::<Vec<_>>(),
        "metadata": metadata,
        "files": files,
        "not_listed": not_listed,
        "warnings": warnings(group, &stored)?,
    });
    Ok((serde_json::to_string_pretty(&with_large_integers_as_text(all)).unwrap_or_default() + "\n", lasts))
}

/// Returns `.tilefs/views.txt`: every view of the group, one per line. Also returns whether the text is final.
pub fn views(domains: &[Box<dyn GroupDomain>]) -> Result<(String, bool)> {
    let mut views = DescribedViews::none();
    domains.iter().try_for_each(|domain| domain.describe_views(&mut views))?;
    let (mut text, lasts) = views.text();
    text += &view_line("MEMBER/", "an array or a group, with a .tilefs/views.txt of its own");
    text += &ABOUT_GROUP.each_ref().map(line_of).concat();
    text += &view_line(".history/TIME/", "the group as of a time");
    Ok((text, lasts))
}

/// Returns sentences about what is left out of the group's own details and metadata.
fn warnings(group: &OpenedGroup, metadata: &Metadata) -> Result<Vec<String>> {
    let future = future_commits(&group.future_commits()?);
    Ok(future.into_iter().chain(meta::left_out(metadata)).collect())
}

/// Returns README.txt, which describes the folder and its uses. Also returns whether the text is final.
pub fn readme(group: &OpenedGroup, domains: &[Box<dyn GroupDomain>]) -> Result<(String, bool)> {
    let members = NamedMembers::new(group.members()?);
    let mut text = heading(&format!("{}: a TileDB group, as plain files", in_line(&group.path().shown_name())));
    let there: Vec<&str> = members.names.iter().flatten().map(String::as_str).collect();
    let missing = members.names.len() - there.len();
    let number = |count: usize| if count == 1 { "1 member".to_owned() } else { format!("{count} members") };
    text += &number(there.len());
    if missing > 0 {
        text += &format!("; {missing} more cannot be shown, see .group/members.tsv");
    }
    text += &format!(".\n{}\n", in_line(&group.path().to_string()));
    let last_commit = group.commit_times()?.into_iter().rfind(|&time| time <= group.window().end);
    if let Some(last) = last_commit {
        text += &format!("Last changed {}.\n", extended(last));
    }
    if group.window().end < u64::MAX {
        text += &format!("Shown as of {}.\n", extended(group.window().end));
    }
    let metadata = group.metadata()?;
    for warning in warnings(group, &metadata)? {
        text += &format!("WARNING: {}\n", in_line(&warning));
    }
    text.push('\n');
    text += &list_of_folders(&there);
    let mut uses = GroupUses { whole: String::new(), views: String::new(), lasts: true };
    let may_open = there.len() <= MAX_EXAMINED;
    domains.iter().try_for_each(|domain| domain.describe_uses(&mut uses, may_open))?;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\nThe folder of an array has a README.txt of its own. Arrays are opened when their folder is entered.\n\n\
         What you can do here\n--------------------\n\
         What the members are, where they are, and what is wrong with those that are missing:\n\
         \x20   column -ts \"$(printf '\\t')\" .group/members.tsv\n\
         {}",
        uses.whole
    );
    if !metadata.is_empty() {
        text += "The group's metadata, a file for each key, and all of it as JSON:\n\
                 \x20   ls .group/meta\n\
                 \x20   cat .group/meta.json\n";
    }
    if last_commit.is_some() {
        text += "The group as it was: a folder for each of its commits, with its members as of then:\n\
                 \x20   ls .history\n";
    }
    text += &uses.views;
    let (views, are_final) = listed_views(domains, &members);
    text += &copies(&views);
    Ok((text, uses.lasts && are_final))
}

/// Returns what recursive commands read of a group that lists these views.
fn copies(views: &[&str]) -> String {
    let Some(first) = views.first() else { return String::new() };
    let folders: Vec<String> = views.iter().map(|view| format!("{view}/")).collect();
    format!(
        "\nBefore copying\n--------------\n\
         cp -r, find -exec and grep -r on this folder read the values in {}, and in the files that the arrays\n\
         list, which are the raw ones; their other files open by name, and --show lists them. For one of these:\n\
         \x20   cp -r {first} DESTINATION\n",
        folders.join(", in "),
    )
}
