//! The source code of a crate, parsed: its modules, and which of them use which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{LazyLock, Mutex};

use proc_macro2::{TokenStream, TokenTree};
use support::repository::root;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// The names of a path, such as `crate::array::Array`.
type Names = Vec<String>;

/// A crate of the workspace, or the program.
pub struct Crate {
    /// The name of its folder.
    pub name: String,
    pub modules: Vec<Module>,
}

/// A module. The first one of a crate is its root.
#[derive(Default)]
pub struct Module {
    /// Its place in the repository; a module within a file has the place of the file.
    pub file: PathBuf,
    /// Its names from the root of the crate on.
    pub names: Names,
    pub is_test: bool,
    /// Its items, without the modules in it.
    pub items: Vec<Item>,
    parent: usize,
    /// The root of its crate. A program and its library have two roots.
    root: usize,
    inner: BTreeMap<String, usize>,
    /// The names that it imports, with what they stand for.
    imports: BTreeMap<String, Names>,
    /// The modules of which it imports all names.
    all_of: Vec<Names>,
    uses: Vec<Use>,
    defined: BTreeSet<String>,
}

impl fmt::Display for Module {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())
    }
}

/// A path that a module uses.
struct Use {
    line: usize,
    names: Names,
    is_test: bool,
    /// Whether the path is only passed on, by `pub use`.
    is_export: bool,
}

/// A use of one module by another.
pub struct Edge<'a> {
    pub from: &'a Module,
    pub to: &'a Module,
    pub line: usize,
    pub is_test: bool,
    pub is_export: bool,
}

/// A check that runs on the thread that owns the parsed crates.
type Check = Box<dyn FnOnce(&[Crate]) + Send>;

/// Returns what a check finds in all crates of the workspace and the program. They are parsed once, by a thread that owns
/// them, because parsed code cannot be passed between threads, and each test has its own.
///
/// # Panics
/// If the check panics, or a file cannot be parsed.
pub fn with_crates<R: Send + 'static>(check: impl FnOnce(&[Crate]) -> R + Send + 'static) -> R {
    static OWNER: LazyLock<Mutex<Sender<Check>>> = LazyLock::new(|| {
        let (checks, received) = mpsc::channel::<Check>();
        std::thread::spawn(move || {
            let crates = crates();
            received.iter().for_each(|check| check(&crates));
        });
        Mutex::new(checks)
    });
    let (found, result) = mpsc::channel();
    let check: Check = Box::new(move |crates| {
        let checked = panic::catch_unwind(AssertUnwindSafe(|| check(crates)));
        // The test waits for it.
        let _ = found.send(checked);
    });
    let sent = OWNER.lock().expect("no test panics while it holds the lock").send(check);
    sent.expect("all files can be parsed");
    let checked = result.recv().expect("all files can be parsed");
    checked.unwrap_or_else(|reason| panic::resume_unwind(reason))
}

/// Returns all crates of the workspace and the program.
fn crates() -> Vec<Crate> {
    let folders = fs::read_dir(root().join("crates")).expect("the crates are there");
    let mut roots: Vec<PathBuf> = folders.map(|entry| entry.expect("a folder").path().join("src/lib.rs")).collect();
    roots.retain(|path| path.is_file());
    roots.push(root().join("src/lib.rs"));
    roots.sort();
    roots.iter().map(|path| Crate::parse(path)).collect()
}

impl Crate {
    /// Parses the crate with this root file, and the program beside it.
    pub fn parse(file: &Path) -> Self {
        let folder = file.ancestors().nth(2).unwrap_or(file);
        let name = if folder == root() { "tilefs".into() } else { folder.file_name().unwrap_or_default().to_owned() };
        let mut parsed = Crate { name: name.to_string_lossy().into_owned(), modules: Vec::new() };
        for file in [file.to_owned(), file.with_file_name("main.rs")].iter().filter(|file| file.is_file()) {
            let file = file.strip_prefix(root()).unwrap_or(file).to_owned();
            let number = parsed.modules.len();
            parsed.add_file(Module { file, parent: number, root: number, ..Module::default() });
        }
        parsed
    }

    fn add_file(&mut self, module: Module) -> usize {
        let text = fs::read_to_string(root().join(&module.file)).unwrap_or_else(|error| panic!("{module}: {error}"));
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{module}: {error}"));
        self.add(module, syntax.items)
    }

    /// Adds a module with its items and the modules in it; returns its number.
    fn add(&mut self, module: Module, items: Vec<Item>) -> usize {
        let number = self.modules.len();
        let is_root =
            module.file.file_stem().is_some_and(|stem| ["mod", "lib", "main"].iter().any(|name| stem == *name));
        let folder = if is_root { module.file.with_file_name("") } else { module.file.with_extension("") };
        let (modules, items): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| matches!(item, Item::Mod(_)));
        let above = Module { file: module.file.clone(), names: module.names.clone(), ..Module::default() };
        let (root_number, is_test) = (module.root, module.is_test);
        self.modules.push(module);
        for item in modules {
            let Item::Mod(item) = item else { continue };
            let name = item.ident.to_string();
            let mut added = Module { parent: number, root: root_number, file: above.file.clone(), ..Module::default() };
            added.names = [&above.names[..], std::slice::from_ref(&name)].concat();
            added.is_test = is_test || is_for_tests(&item.attrs);
            let added = match item.content {
                Some((_, items)) => self.add(added, items),
                None => {
                    let usual = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
                    let file = usual.into_iter().find(|file| root().join(file).is_file());
                    added.file = file.unwrap_or_else(|| panic!("{above}: where is {name}?"));
                    self.add_file(added)
                }
            };
            self.modules[number].inner.insert(name, added);
        }
        let mut collector = Collector { module: &mut self.modules[number], is_test, is_export: false };
        items.iter().for_each(|item| collector.visit_item(item));
        self.modules[number].items = items;
        number
    }

    /// Returns which module uses which other one.
    pub fn edges(&self) -> impl Iterator<Item = Edge<'_>> {
        self.modules.iter().enumerate().flat_map(move |(number, from)| {
            let uses = from.uses.iter().filter_map(move |used| {
                let to = &self.modules[self.find(number, &used.names, 0)?];
                Some(Edge { from, to, line: used.line, is_test: used.is_test, is_export: used.is_export })
            });
            uses.filter(|edge| edge.to.names != edge.from.names)
        })
    }

    /// Returns the module in which a path, used in a module, ends; `None` if it begins outside the crate.
    fn find(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let module = &self.modules[from];
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.follow(module.root, rest, depth),
            library if library == self.name => self.follow(0, rest, depth),
            "self" => self.follow(from, rest, depth),
            "super" => self.follow(module.parent, rest, depth),
            name if module.inner.contains_key(name) || is_imported(module, name, path) => {
                self.follow(from, path, depth)
            }
            _ => None,
        }
    }

    /// Follows a path from a module on.
    fn follow(&self, at: usize, path: &[String], depth: usize) -> Option<usize> {
        let module = &self.modules[at];
        let Some((first, rest)) = path.split_first().filter(|_| depth < 20) else { return Some(at) };
        if first == "super" {
            return self.follow(module.parent, rest, depth + 1);
        }
        if let Some(inner) = module.inner.get(first) {
            return self.follow(*inner, rest, depth + 1);
        }
        if let Some(path) = module.imports.get(first).filter(|_| !module.defined.contains(first)) {
            // What is re-exported from another crate counts as an item of the module that does.
            return self.find(at, &[&path[..], rest].concat(), depth + 1).or(Some(at));
        }
        let others =
            module.all_of.iter().filter_map(|path| self.find(at, path, depth + 1)).filter(|other| *other != at);
        let mut with_it = others.filter(|other| {
            let other = &self.modules[*other];
            other.defined.contains(first) || other.inner.contains_key(first) || other.imports.contains_key(first)
        });
        match with_it.next().filter(|_| !module.defined.contains(first)) {
            Some(other) => self.follow(other, path, depth + 1),
            None => Some(at),
        }
    }
}

/// Returns whether a name at the start of a path stands for an import, and not for itself as in `use name::Item as name`.
fn is_imported(module: &Module, name: &str, path: &[String]) -> bool {
    path.len() > 1 && module.imports.get(name).is_some_and(|import| import.first().is_some_and(|first| first != name))
}

/// Returns whether an item exists only in tests.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = || attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"));
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && is_cfg_test())
    })
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Collects the paths that the items of a module use, and the names that they define.
struct Collector<'a> {
    module: &'a mut Module,
    is_test: bool,
    is_export: bool,
}

impl Collector<'_> {
    fn add(&mut self, line: usize, names: Names) {
        self.module.uses.push(Use { line, names, is_test: self.is_test, is_export: self.is_export });
    }

    /// Visits something that exists only in tests if its attributes say so.
    fn within(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let outside = self.is_test;
        self.is_test |= is_for_tests(attributes);
        visit(self);
        self.is_test = outside;
    }

    fn add_tree(&mut self, tree: &UseTree, mut names: Names) {
        match tree {
            UseTree::Path(path) => {
                names.push(path.ident.to_string());
                self.add_tree(&path.tree, names);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, names.clone())),
            UseTree::Glob(glob) => {
                self.add(glob.span().start().line, names.clone());
                self.module.all_of.push(names);
            }
            UseTree::Name(_) | UseTree::Rename(_) => {
                let (ident, alias) = match tree {
                    UseTree::Rename(rename) => (&rename.ident, &rename.rename),
                    UseTree::Name(name) => (&name.ident, &name.ident),
                    _ => return,
                };
                if ident != "self" {
                    names.push(ident.to_string());
                }
                let alias = if alias == "self" { names.last().cloned() } else { Some(alias.to_string()) };
                self.add(ident.span().start().line, names.clone());
                self.module.imports.extend(alias.map(|alias| (alias, names)));
            }
        }
    }

    /// Adds the paths in the tokens of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut names = vec![first.to_string()];
                    while let Some([TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(next)]) =
                        tokens.get(at..at + 3)
                        && (a.as_char(), b.as_char()) == (':', ':')
                    {
                        names.push(next.to_string());
                        at += 3;
                    }
                    if names.len() > 1 {
                        self.add(first.span().start().line, names);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.module.defined.extend(name.map(ToString::to_string));
        self.within(attributes(item), |inner| visit::visit_item(inner, item));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.within(&function.attrs, |inner| visit::visit_impl_item_fn(inner, function));
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.is_export = !matches!(item.vis, syn::Visibility::Inherited);
        self.add_tree(&item.tree, Names::new());
        self.is_export = false;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.add(path.span().start().line, path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.add_tokens(called.tokens.clone());
    }

    // `pub(in path)` is no use, and attributes name no modules.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}
