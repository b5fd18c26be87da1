//! The order of the source code: what circles in it, and what is too large or has the name of something else. All that
//! was there when a rule was made is listed in `exceptions.txt`, which may only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use support::repository::{files_below, root, text};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Item, Signature, Visibility};

use crate::sources::{Crate, Module, attributes, is_for_tests, with_crates};

const EXCEPTIONS: &str = "tests/documents/exceptions.txt";

/// The starts of the lines, one for each rule.
const RULES: [&str; 4] = ["circle in ", "large folder: ", "long function in ", "type defined in several files: "];

/// The most source files side by side in a folder.
const MOST_FILES: usize = 20;

/// The most lines of a function.
const MOST_LINES: usize = 60;

/// Folders of like things, one file each, which may hold any number of them.
const LIKE_THINGS: [(&str, &str); 3] = [
    ("crates/format/src", "stored structures"),
    ("crates/format/src/filter", "filters"),
    ("crates/tree/src/views", "views"),
];

#[test]
fn the_order_has_no_exceptions_but_those_listed() {
    let mut found: BTreeSet<String> = with_crates(|crates| {
        let modules = crates.iter().flat_map(|one| &one.modules).filter(|module| !module.is_test);
        let mut found: BTreeSet<String> = crates.iter().flat_map(circles).collect();
        found.extend(crates.iter().flat_map(|one| {
            one.modules.iter().filter(|module| !module.is_test).flat_map(|module| long_functions(&one.name, module))
        }));
        found.extend(repeated_types(modules));
        found
    });
    found.extend(large_folders());
    let text = text(EXCEPTIONS);
    let (head, listed) = text.split_once("\n\n").expect("a head and a list");
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    if std::env::var_os("TILEFS_ACCEPT").is_some_and(|accept| accept == "yes") {
        let counts =
            |lines: &BTreeSet<String>| RULES.map(|rule| lines.iter().filter(|line| line.starts_with(rule)).count());
        let (before, after) = (counts(&listed), counts(&found));
        assert!(
            after.iter().zip(before).all(|(after, before)| *after <= before),
            "{RULES:?}: {before:?}, now {after:?}"
        );
        let list: String = found.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(root().join(EXCEPTIONS), format!("{head}\n\n{list}")).expect("the list is written");
        return;
    }
    let new: Vec<&String> = found.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&found).collect();
    assert!(new.is_empty(), "against the rules at the start of {EXCEPTIONS}: {new:#?}\nno longer there: {gone:#?}");
    assert!(gone.is_empty(), "no longer needed; TILEFS_ACCEPT=yes strikes them out of {EXCEPTIONS}: {gone:#?}");
}

/// Returns the uses of one file or folder by another beside it that are part of a circle.
fn circles(of: &Crate) -> Vec<String> {
    // By folder, what is side by side in it, with what it uses beside it.
    let mut folders: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for edge in of.edges().filter(|edge| !edge.is_test && !edge.is_export && !edge.to.is_test) {
        let (from, to) = (place(&edge.from.file), place(&edge.to.file));
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if let (Some(user), Some(used)) = (from.get(common), to.get(common)) {
            let beside = folders.entry(from[..common].to_vec()).or_default();
            beside.entry(user.clone()).or_default().insert(used.clone());
        }
    }
    let in_folder = |(folder, uses): (&Vec<String>, &BTreeMap<String, BTreeSet<String>>)| {
        let name = folder.last().unwrap_or(&of.name).clone();
        let circle = |user: &String, used: &String| reachable(uses, used).contains(user);
        let all = uses.iter().flat_map(|(user, all)| all.iter().map(move |used| (user, used)));
        let circling = all.filter(|(user, used)| circle(user, used));
        circling.map(|(user, used)| format!("circle in {}: {name}: {user} uses {used}", of.name)).collect::<Vec<_>>()
    };
    folders.iter().flat_map(in_folder).collect()
}

/// Returns the names of a file and of the folders around it, from the root of its crate on.
fn place(file: &Path) -> Vec<String> {
    let names = file.with_extension("");
    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
    names.skip_while(|name| name != "src").skip(1).collect()
}

/// Returns all that something uses, directly or not.
fn reachable(uses: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(next) = waiting.pop() {
        if found.insert(next.clone()) {
            waiting.extend(uses.get(&next).into_iter().flatten().cloned());
        }
    }
    found
}

/// Returns the functions of a module that have too many lines without saying why.
fn long_functions(of: &str, module: &Module) -> Vec<String> {
    let mut collector = Functions::default();
    module.items.iter().for_each(|item| collector.visit_item(item));
    let module = module.names.last().map_or("lib", String::as_str);
    collector.long.iter().map(|name| format!("long function in {of}: {module}::{name}")).collect()
}

#[derive(Default)]
struct Functions {
    long: Vec<String>,
}

impl Functions {
    fn add(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        let lines = block.span().end().line + 1 - signature.span().start().line;
        let comment = attributes.iter().filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
            _ => None,
        });
        let says_why = comment.filter_map(|value| match value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        });
        if lines > MOST_LINES && !says_why.collect::<String>().contains("long because") {
            self.long.push(signature.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.attrs, &function.sig, &function.block);
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.attrs, &function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// Returns the names of types that are visible outside their file and also the names of types of other files.
fn repeated_types<'a>(modules: impl Iterator<Item = &'a Module>) -> Vec<String> {
    let mut files: BTreeMap<String, (BTreeSet<&Path>, bool)> = BTreeMap::new();
    for module in modules {
        for item in module.items.iter().filter(|item| !is_for_tests(attributes(item))) {
            let (name, visibility) = match item {
                Item::Enum(item) => (&item.ident, &item.vis),
                Item::Struct(item) => (&item.ident, &item.vis),
                Item::Trait(item) => (&item.ident, &item.vis),
                _ => continue,
            };
            let (of_name, is_visible) = files.entry(name.to_string()).or_default();
            of_name.insert(&module.file);
            *is_visible |= !matches!(visibility, Visibility::Inherited);
        }
    }
    let repeated = files.iter().filter(|(_, (files, is_visible))| files.len() > 1 && *is_visible);
    repeated.map(|(name, _)| format!("type defined in several files: {name}")).collect()
}

/// Returns the folders with too many source files side by side.
fn large_folders() -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for folder in ["src", "crates"] {
        for file in files_below(&root().join(folder), &["rs"]) {
            let place = file.strip_prefix(root()).unwrap_or(&file);
            if place.iter().any(|name| name == "src") && !place.ends_with("tests.rs") {
                let folder = place.parent().unwrap_or(place).display().to_string();
                *counts.entry(folder).or_default() += 1;
            }
        }
    }
    let is_of_like_things = |folder: &str| LIKE_THINGS.iter().any(|(like, _)| *like == folder);
    let large = counts.iter().filter(|(folder, count)| **count > MOST_FILES && !is_of_like_things(folder));
    large.map(|(folder, _)| format!("large folder: {folder}")).collect()
}
