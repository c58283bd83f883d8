//! Parses the sources of one crate into files, modules, and the names of each module.
//!
//! This is the first of the test's files: `resolve.rs` looks names up here, and `imports.rs` walks the
//! files. The sources are a map from path to text, so the small trees of `planted.rs` need no files on
//! disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use syn::{Attribute, Item, ItemUse, UseTree};

/// The text of each source file by its path. A path is relative to the source folder and has `/`
/// between its parts.
pub type Sources = BTreeMap<String, String>;

/// Reads all `.rs` files below `folder`.
pub fn read(folder: &Path) -> Sources {
    fn visit(folder: &Path, prefix: &str, sources: &mut Sources) {
        let entries = std::fs::read_dir(folder);
        let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let entry = entry.expect("a folder's entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let place = format!("{prefix}{name}");
            if entry.file_type().expect("the entry's type").is_dir() {
                visit(&entry.path(), &format!("{place}/"), sources);
            } else if name.ends_with(".rs") {
                sources.insert(
                    place,
                    std::fs::read_to_string(entry.path()).expect("a source in UTF-8"),
                );
            }
        }
    }
    let mut sources = Sources::new();
    visit(folder, "", &mut sources);
    sources
}

/// The namespace of a name that is not a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    Type,
    Value,
    Macro,
}

/// One meaning of a name in a module.
#[derive(Debug)]
pub enum Meaning {
    Module(usize),
    Item(Namespace),
    /// The path in the `use` declaration that imports the name.
    Import(Vec<String>),
}

/// A module: a file, or a block `mod name { … }` in a file.
#[derive(Debug)]
pub struct Module {
    pub file: String,
    pub parent: Option<usize>,
    pub names: HashMap<String, Vec<Meaning>>,
    /// The paths of the declarations `use path::*`.
    pub globs: Vec<Vec<String>>,
    /// The indices of inline modules by name. The items of an inline module are part of its file's
    /// syntax.
    pub inline: HashMap<String, usize>,
}

/// A crate: the trees of modules below its roots (`lib.rs`, `main.rs`, `bin/*.rs`).
#[derive(Default)]
pub struct Tree {
    pub modules: Vec<Module>,
    /// The files that are compiled outside tests, each with its module and its syntax. A file that two
    /// programs share is listed once per program.
    pub files: Vec<(usize, syn::File)>,
    /// For each `macro_rules!` macro, by name, the module that defines it. Code below the definition may
    /// use such a macro without a path.
    pub macros: HashMap<String, usize>,
    /// Files that only tests reach.
    pub tests: BTreeSet<String>,
    /// Files that a `mod` declaration names but that do not exist.
    pub missing: Vec<String>,
}

impl Tree {
    /// Parses `sources`, beginning with the roots of the crate.
    pub fn new(sources: &Sources) -> Self {
        let mut tree = Self::default();
        let program = |path: &&String| path.starts_with("bin/") && path.matches('/').count() == 1;
        let roots = ["lib.rs", "main.rs"].into_iter().filter(|root| sources.contains_key(*root));
        for root in roots.chain(sources.keys().filter(program).map(String::as_str)) {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
            tree.file(sources, root, folder, None);
        }
        tree
    }

    /// Returns the files that neither a root nor a test reaches.
    pub fn unreached<'a>(&self, sources: &'a Sources) -> Vec<&'a str> {
        let reached: BTreeSet<&str> =
            self.modules.iter().map(|module| module.file.as_str()).collect();
        let alone = |path: &&str| !reached.contains(path) && !self.tests.contains(*path);
        sources.keys().map(String::as_str).filter(alone).collect()
    }

    /// Parses the file at `path` and its child modules, which lie in `folder`. Returns the module of
    /// the file.
    fn file(
        &mut self,
        sources: &Sources,
        path: &str,
        folder: &str,
        parent: Option<usize>,
    ) -> usize {
        let text = &sources[path];
        let syntax = syn::parse_file(text).unwrap_or_else(|error| {
            panic!("{path}:{}: {error}", error.span().start().line);
        });
        let module = self.module(path, parent);
        self.items(sources, &syntax.items, module, folder);
        self.files.push((module, syntax));
        module
    }

    fn module(&mut self, file: &str, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            file: file.to_owned(),
            parent,
            names: HashMap::new(),
            globs: Vec::new(),
            inline: HashMap::new(),
        });
        self.modules.len() - 1
    }

    fn name(&mut self, module: usize, name: impl ToString, meaning: Meaning) {
        self.modules[module].names.entry(name.to_string()).or_default().push(meaning);
    }

    /// Adds the names that `items` define to `module`, and parses the child modules among `items`.
    fn items(&mut self, sources: &Sources, items: &[Item], module: usize, folder: &str) {
        use Namespace::{Macro, Type, Value};
        for item in items {
            if let Item::Mod(child) = item {
                self.child(sources, child, module, folder);
                continue;
            }
            if only_tests(attributes(item)) {
                continue;
            }
            match item {
                Item::Use(declaration) => self.import(module, declaration),
                Item::Fn(item) => self.name(module, &item.sig.ident, Meaning::Item(Value)),
                Item::Const(item) => self.name(module, &item.ident, Meaning::Item(Value)),
                Item::Static(item) => self.name(module, &item.ident, Meaning::Item(Value)),
                Item::Enum(item) => self.name(module, &item.ident, Meaning::Item(Type)),
                Item::Union(item) => self.name(module, &item.ident, Meaning::Item(Type)),
                Item::Type(item) => self.name(module, &item.ident, Meaning::Item(Type)),
                Item::Trait(item) => self.name(module, &item.ident, Meaning::Item(Type)),
                Item::Struct(item) => {
                    self.name(module, &item.ident, Meaning::Item(Type));
                    if !matches!(item.fields, syn::Fields::Named(_)) {
                        self.name(module, &item.ident, Meaning::Item(Value));
                    }
                }
                Item::Macro(item) => {
                    if let Some(ident) = &item.ident {
                        self.name(module, ident, Meaning::Item(Macro));
                        self.macros.insert(ident.to_string(), module);
                    }
                }
                Item::ForeignMod(block) => {
                    for item in &block.items {
                        match item {
                            syn::ForeignItem::Fn(item) => {
                                self.name(module, &item.sig.ident, Meaning::Item(Value));
                            }
                            syn::ForeignItem::Static(item) => {
                                self.name(module, &item.ident, Meaning::Item(Value));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the names of a `use` declaration to `module`.
    fn import(&mut self, module: usize, declaration: &ItemUse) {
        for (path, name) in flatten(declaration) {
            match name {
                Some(name) => self.name(module, name, Meaning::Import(path)),
                None => self.modules[module].globs.push(path),
            }
        }
    }

    fn child(&mut self, sources: &Sources, child: &syn::ItemMod, module: usize, folder: &str) {
        let name = child.ident.to_string();
        let inside = join(folder, &name);
        let Some((_, items)) = &child.content else {
            let explicit = child.attrs.iter().find_map(|attribute| match &attribute.meta {
                syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                    syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                        Some(text.value())
                    }
                    _ => None,
                },
                _ => None,
            });
            let (path, below) = match explicit {
                Some(explicit) => {
                    let here =
                        self.modules[module].file.rsplit_once('/').map_or("", |(folder, _)| folder);
                    let path = normal(&join(here, &explicit));
                    let below = path
                        .rsplit_once('/')
                        .map_or(String::new(), |(folder, _)| folder.to_owned());
                    (path, below)
                }
                None if sources.contains_key(&format!("{inside}.rs")) => {
                    (format!("{inside}.rs"), inside)
                }
                None => (format!("{inside}/mod.rs"), inside),
            };
            if !sources.contains_key(&path) {
                // Tests outside `src/` are not in `sources`. They do not count as missing.
                if !(path.starts_with("../") && only_tests(&child.attrs)) {
                    self.missing.push(path);
                }
            } else if only_tests(&child.attrs) {
                let own =
                    |other: &&String| **other == path || other.starts_with(&format!("{below}/"));
                self.tests.extend(sources.keys().filter(own).cloned());
            } else {
                let id = self.file(sources, &path, &below, Some(module));
                self.name(module, name, Meaning::Module(id));
            }
            return;
        };
        if !only_tests(&child.attrs) {
            let file = self.modules[module].file.clone();
            let id = self.module(&file, Some(module));
            self.modules[module].inline.insert(name.clone(), id);
            self.name(module, name, Meaning::Module(id));
            self.items(sources, items, id, &inside);
        }
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Removes `.` and `..` from a path, so that `a/../b` becomes `b`. A `..` that leads out of the folder stays.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the leaves of a `use` declaration, each with its path and the name that it declares. The
/// leaf `*` declares no name.
pub fn flatten(declaration: &ItemUse) -> Vec<(Vec<String>, Option<String>)> {
    fn walk(tree: &UseTree, path: &[String], leaves: &mut Vec<(Vec<String>, Option<String>)>) {
        let with = |name: &syn::Ident| [path, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(inner) => walk(&inner.tree, &with(&inner.ident), leaves),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, path, leaves)),
            UseTree::Glob(_) => leaves.push((path.to_vec(), None)),
            // `use a::{self}` declares the name `a`. `use super::{self}` is not valid Rust.
            UseTree::Name(name) if name.ident == "self" => {
                leaves.push((path.to_vec(), path.last().cloned()));
            }
            UseTree::Name(name) => leaves.push((with(&name.ident), Some(name.ident.to_string()))),
            UseTree::Rename(name) => {
                let from = if name.ident == "self" { path.to_vec() } else { with(&name.ident) };
                leaves.push((from, Some(name.rename.to_string())));
            }
        }
    }
    let mut leaves = Vec::new();
    if declaration.leading_colon.is_none() {
        walk(&declaration.tree, &[], &mut leaves);
    }
    leaves
}

/// Returns true if `attributes` exclude an item from all builds except tests: `#[cfg(test)]`,
/// `#[cfg(all(test, …))]` or `#[test]`.
pub fn only_tests(attributes: &[Attribute]) -> bool {
    fn demands_test(meta: &syn::Meta) -> bool {
        match meta {
            syn::Meta::Path(path) => path.is_ident("test"),
            syn::Meta::List(list) if list.path.is_ident("all") => {
                let parser =
                    syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
                list.parse_args_with(parser).is_ok_and(|all| all.iter().any(demands_test))
            }
            _ => false,
        }
    }
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<syn::Meta>().is_ok_and(|meta| demands_test(&meta))
        }
        _ => false,
    })
}

/// Returns the attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
