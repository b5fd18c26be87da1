//! Checks the interface for Rust programs: every type in a signature that the documentation of `tilefs-api` shows is a
//! type that this crate exports, or one of `tilefs_format`, which it exports as a whole, or of another library.
//!
//! The compiler checks only types of the same crate (`unnameable_types`), and the documentation links what it can.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use support::repository::{files_below, root};
use syn::visit::{self, Visit};
use syn::{GenericParam, Generics, ImplItem, Item, ItemImpl, Signature, TraitItem, Type, UseTree, Visibility};

/// Types and traits of the standard library that no file imports.
const PRELUDE: [&str; 20] = [
    "AsRef",
    "Box",
    "Clone",
    "Copy",
    "Default",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Into",
    "Iterator",
    "Option",
    "Result",
    "Self",
    "Send",
    "String",
    "Sync",
    "ToString",
    "Vec",
];

/// Calls `found` with the local name and the first word of the path of each name that a tree of imports has.
fn each_import(tree: &UseTree, first: Option<&str>, found: &mut impl FnMut(String, String)) {
    let of = |first: Option<&str>, name: &syn::Ident| first.map_or_else(|| name.to_string(), str::to_owned);
    match tree {
        UseTree::Path(path) => {
            let own = path.ident.to_string();
            each_import(&path.tree, Some(first.unwrap_or(&own)), found);
        }
        UseTree::Name(name) => found(name.ident.to_string(), of(first, &name.ident)),
        UseTree::Rename(name) => found(name.rename.to_string(), of(first, &name.ident)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| each_import(tree, first, found)),
        UseTree::Glob(_) => {}
    }
}

/// Returns the names that the root of a crate exports, and the crates that it exports as a whole.
fn exports(root: &syn::File) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for item in &root.items {
        if let Item::Use(import) = item
            && matches!(import.vis, Visibility::Public(_))
        {
            each_import(&import.tree, None, &mut |name, origin| drop(names.insert(name, origin)));
        }
    }
    names
}

/// The first words of all paths in a signature.
#[derive(Default)]
struct Words(BTreeSet<String>);

impl Visit<'_> for Words {
    fn visit_path(&mut self, path: &syn::Path) {
        self.0.extend(path.segments.first().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }

    /// Attributes and bodies are no part of a signature.
    fn visit_attribute(&mut self, _: &syn::Attribute) {}

    fn visit_block(&mut self, _: &syn::Block) {}
}

/// The words of signatures, and the parameters that these signatures declare.
#[derive(Default)]
struct Signatures {
    words: Words,
    parameters: BTreeSet<String>,
}

impl Signatures {
    fn add(&mut self, signature: &Signature) {
        self.words.visit_signature(signature);
        self.add_parameters(&signature.generics);
    }

    fn add_parameters(&mut self, generics: &Generics) {
        self.parameters.extend(generics.params.iter().filter_map(|one| match one {
            GenericParam::Type(one) => Some(one.ident.to_string()),
            GenericParam::Const(one) => Some(one.ident.to_string()),
            GenericParam::Lifetime(_) => None,
        }));
    }

    /// Adds the public signatures of an item, if it is exported.
    fn add_item(&mut self, item: &Item, exported: &BTreeMap<String, String>) {
        let is_exported = |name: &syn::Ident| exported.contains_key(&name.to_string());
        match item {
            Item::Fn(item) if is_exported(&item.sig.ident) => self.add(&item.sig),
            Item::Struct(item) if is_exported(&item.ident) => {
                self.add_parameters(&item.generics);
                let fields = item.fields.iter().filter(|field| matches!(field.vis, Visibility::Public(_)));
                fields.for_each(|field| self.words.visit_field(field));
            }
            Item::Enum(item) if is_exported(&item.ident) => {
                item.variants.iter().for_each(|one| self.words.visit_variant(one));
            }
            Item::Trait(item) if is_exported(&item.ident) => {
                for item in &item.items {
                    if let TraitItem::Fn(item) = item {
                        self.add(&item.sig);
                    }
                }
            }
            Item::Impl(item) => match &*item.self_ty {
                Type::Path(of) if of.path.get_ident().is_some_and(is_exported) => self.add_methods(item),
                _ => {}
            },
            _ => {}
        }
    }

    fn add_methods(&mut self, item: &ItemImpl) {
        self.add_parameters(&item.generics);
        if let Some((of, _)) = &item.trait_ {
            self.words.visit_path(of);
        }
        for inner in &item.items {
            match inner {
                ImplItem::Fn(inner) if matches!(inner.vis, Visibility::Public(_)) => self.add(&inner.sig),
                ImplItem::Type(inner) => self.words.visit_type(&inner.ty),
                _ => {}
            }
        }
    }
}

/// Returns the types in the public signatures of exported items that cannot be named through the exports.
fn unnamed(text: &str, exported: &BTreeMap<String, String>) -> BTreeSet<String> {
    let file = syn::parse_file(text).unwrap();
    let mut imports = BTreeMap::new();
    for item in &file.items {
        if let Item::Use(import) = item {
            each_import(&import.tree, None, &mut |name, origin| drop(imports.insert(name, origin)));
        }
    }
    let mut signatures = Signatures::default();
    file.items.iter().for_each(|item| signatures.add_item(item, exported));
    let is_primitive = |word: &str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let mut unnamed = BTreeSet::new();
    for word in &signatures.words.0 - &signatures.parameters {
        let is_of_tilefs = match imports.get(&word).map(String::as_str) {
            Some(origin) => ["crate", "super"].contains(&origin) || origin.starts_with("tilefs_"),
            // A type of this file.
            None => !PRELUDE.contains(&word.as_str()) && !is_primitive(&word),
        };
        let is_exported = exported.contains_key(&word)
            || imports
                .get(&word)
                .is_some_and(|origin| exported.values().any(|of| of == origin) && origin == "tilefs_format");
        if is_of_tilefs && !is_exported {
            unnamed.insert(word);
        }
    }
    unnamed
}

#[test]
fn every_type_of_a_documented_signature_can_be_named() {
    let interface = root().join("crates/api/src");
    let exported = exports(&syn::parse_file(&fs::read_to_string(interface.join("lib.rs")).unwrap()).unwrap());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let of_reader = files_below(&root().join("crates/reader/src"), &["rs"]);
    for path in files_below(&interface, &["rs"]).into_iter().chain(of_reader) {
        let text = fs::read_to_string(&path).unwrap();
        let is_own = path.starts_with(&interface);
        // Types of these names in the parts of the reader are others, which tests/documents forbids once they cross files.
        let defines = |name: &String| {
            ["struct", "enum", "trait"].iter().any(|what| text.contains(&format!("\npub {what} {name}")))
        };
        if !is_own && !exported.iter().any(|(name, origin)| origin == "tilefs_reader" && defines(name)) {
            continue;
        }
        seen += 1;
        wrong.extend(unnamed(&text, &exported).into_iter().map(|name| format!("{}: {name}", path.display())));
        assert!(!text.contains("doc(hidden)"), "{} hides what programs could use", path.display());
    }
    assert!(exported.len() > 15 && seen > 8, "{} names in {seen} files", exported.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_type_that_cannot_be_named_is_found() {
    let exported = syn::parse_file("pub use tilefs_reader::{Rows, Count}; pub use tilefs_format as format;").unwrap();
    let exported = exports(&exported);
    let found = |text: &str| unnamed(text, &exported).into_iter().collect::<Vec<_>>();
    let imports = "use std::sync::Arc; use tilefs_format::Scalar; use crate::inner::Hidden; use tilefs_storage::Key;";
    let of = |text: &str| found(&format!("{imports} {text}"));
    assert_eq!(of("impl Rows { pub fn select(self, range: &[Option<Hidden>]) -> Arc<Count> {} }"), ["Hidden"]);
    assert_eq!(of("impl Rows { pub fn key<T: Into<Key>>(&self, key: T) -> Scalar { Hidden::new() } }"), ["Key"]);
    assert_eq!(of("pub struct Count { pub low: Hidden, high: Key }"), ["Hidden"]);
    assert_eq!(of("pub enum Count { One(Hidden), Two { key: Key } }"), ["Hidden", "Key"]);
    assert_eq!(of("impl From<Hidden> for Rows { }"), ["Hidden"]);
    assert_eq!(of("struct Local; impl Rows { pub fn local(&self) -> Local {} fn own(&self) -> Hidden {} }"), ["Local"]);
    assert!(of("pub struct Other(pub Hidden); impl Other { pub fn hidden() -> Hidden {} }").is_empty());
}
