//! The sections of the manual about all views, which are made from the lists of views.

use std::path::Path;
use std::{env, fs};

use crate::domains::group_view::{ABOUT_GROUP, GroupView, PLAIN_ZARR};
use crate::domains::{DOMAINS, Domain};
use crate::views::VIEWS;
use crate::views::facts::{Shown, ViewFacts};

/// `TILEFS_ACCEPT=yes` rewrites the sections.
#[test]
fn the_manual_lists_every_view() {
    let of_arrays: String = VIEWS.iter().map(|view| of_array(&view.facts)).collect();
    let of_groups = ".SS Any group\n".to_owned() + &of_group(&PLAIN_ZARR);
    let of_groups = of_groups + &ABOUT_GROUP.each_ref().map(of_group).concat();
    let of_domains: String = DOMAINS.iter().filter(|domain| domain.of_group.is_some()).map(of_domain).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../man/tilefs-paths.7");
    let page = fs::read_to_string(&path).unwrap();
    let made = with_section(&page, "ALL VIEWS", &of_arrays);
    let made = with_section(&made, "ALL VIEWS OF GROUPS", &(of_groups + &of_domains));
    if env::var_os("TILEFS_ACCEPT").is_some_and(|accept| accept == "yes") {
        fs::write(&path, made).unwrap();
        return;
    }
    assert_eq!(page, made, "TILEFS_ACCEPT=yes rewrites the sections");
}

fn with_section(page: &str, title: &str, text: &str) -> String {
    let heading = format!(".SH {title}\n");
    let (before, rest) = page.split_once(&heading).unwrap();
    let (_, after) = rest.split_once(".SH ").unwrap();
    format!("{before}{heading}{text}.SH {after}")
}

fn of_array(view: &ViewFacts) -> String {
    let folder = if view.folder.is_empty() { String::new() } else { format!("{}/", view.folder) };
    let paths: Vec<String> = view.files.iter().map(|file| escaped(&format!("{folder}{file}"))).collect();
    let shown = match view.shown {
        Shown::Always => String::new(),
        Shown::Alone(word) => format!("; in some groups, listed with --show {word}"),
        Shown::With(word) => format!("; listed with --show {word}"),
        Shown::WithAll => "; listed with --show all".to_owned(),
        Shown::Never => "; never listed".to_owned(),
    };
    entry(&paths.join(" \", \" "), &format!("{}{shown}", view.reader), view.lacks)
}

fn of_domain(domain: &Domain) -> String {
    format!(".SS {}\n{}", escaped(domain.groups), domain.group_views.iter().map(of_group).collect::<String>())
}

fn of_group(view: &GroupView) -> String {
    entry(&escaped(view.path), view.reader, view.lacks)
}

/// Returns the entry about a view; `paths` are as roff writes them.
fn entry(paths: &str, about: &str, lacks: &str) -> String {
    let [about, lacks] = [about, &format!("cannot hold: {lacks}")].map(|text| wrapped(&escaped(text)));
    format!(".TP\n.IR {paths}\n{about}\n.br\n{lacks}\n")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Breaks a text into lines of at most 78 bytes, where its words allow it.
fn wrapped(text: &str) -> String {
    let (mut lines, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        if length > 0 && length + 1 + word.len() > 78 {
            // At the beginning of a line, a full stop would make it a request.
            lines += if word.starts_with('.') { "\n\\&" } else { "\n" };
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += word.len();
    }
    lines
}
