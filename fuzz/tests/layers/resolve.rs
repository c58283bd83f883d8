//! Resolves a path in a module to the place that defines the item. The search goes through `use`
//! declarations, globs and re-exports. The sources come from `source.rs`; `imports.rs` uses the result.

use std::collections::HashSet;

use super::source::{Meaning, Namespace, Tree};

/// The place that defines what a path names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    Module(usize),
    /// A name in a module: an item, or a name that a macro may have defined there.
    Item(usize, String),
}

impl Home {
    /// Returns the module that contains the item; for a module, the module itself.
    pub fn module(&self) -> usize {
        match self {
            Home::Module(module) | Home::Item(module, _) => *module,
        }
    }
}

type Seen = HashSet<(usize, String)>;

impl Tree {
    /// Returns the places that define what `path` names in `module`: none if the path leads out of the
    /// crate, several if the name has several meanings. `wanted` restricts the last segment to one
    /// namespace.
    pub fn resolve(&self, module: usize, path: &[String], wanted: Option<Namespace>) -> Vec<Home> {
        self.resolve_prefix(module, path, wanted).into_iter().map(|(home, _)| home).collect()
    }

    /// Does what [`resolve`](Self::resolve) does, and also returns, for each place, the number of the
    /// path's segments that lead to it. The remaining segments name something inside the item, such as a
    /// function of a type.
    pub fn resolve_prefix(
        &self,
        module: usize,
        path: &[String],
        wanted: Option<Namespace>,
    ) -> Vec<(Home, usize)> {
        self.follow(module, path, wanted, &mut Seen::new())
    }

    fn follow(
        &self,
        module: usize,
        path: &[String],
        wanted: Option<Namespace>,
        seen: &mut Seen,
    ) -> Vec<(Home, usize)> {
        let mut here = module;
        let mut rooted = false;
        for (index, segment) in path.iter().enumerate() {
            let last = index + 1 == path.len();
            match segment.as_str() {
                "crate" if index == 0 => here = self.root(module),
                "self" if index == 0 => {}
                "super" if index == 0 || rooted => match self.modules[here].parent {
                    Some(parent) => here = parent,
                    None => return Vec::new(),
                },
                name => {
                    let wanted = if last { wanted } else { Some(Namespace::Type) };
                    let mut homes = self.lookup(here, name, wanted, seen);
                    // If no type has this name, tries the name's other meanings.
                    if homes.is_empty() && !last {
                        homes = self.lookup(here, name, None, seen);
                    }
                    if homes.is_empty() {
                        // If the module declares the name, or if this is the first segment, the path
                        // leads out of the crate. Otherwise a macro may have defined the name in this
                        // module.
                        let made = rooted && !self.modules[here].names.contains_key(name);
                        let home = made.then(|| (Home::Item(here, name.to_owned()), index + 1));
                        return home.into_iter().collect();
                    }
                    if last {
                        return homes_of(homes, path.len());
                    }
                    let next = homes.iter().find_map(|home| match home {
                        Home::Module(module) => Some(*module),
                        Home::Item(..) => None,
                    });
                    match next {
                        Some(next) => here = next,
                        None => return homes_of(homes, index + 1),
                    }
                }
            }
            rooted = true;
        }
        if rooted { vec![(Home::Module(here), path.len())] } else { Vec::new() }
    }

    /// Returns the meanings of `name` in `module`. `wanted` restricts them to one namespace; `None`
    /// allows all.
    fn lookup(
        &self,
        module: usize,
        name: &str,
        wanted: Option<Namespace>,
        seen: &mut Seen,
    ) -> Vec<Home> {
        if !seen.insert((module, name.to_owned())) {
            return Vec::new();
        }
        let mut homes = Vec::new();
        for meaning in self.modules[module].names.get(name).into_iter().flatten() {
            match meaning {
                Meaning::Module(id) if wanted.is_none_or(|wanted| wanted == Namespace::Type) => {
                    homes.push(Home::Module(*id));
                }
                Meaning::Item(namespace) if wanted.is_none_or(|wanted| wanted == *namespace) => {
                    let home = Home::Item(module, name.to_owned());
                    if !homes.contains(&home) {
                        homes.push(home);
                    }
                }
                // A declaration such as `use serde;` leads back to its own name. Then `seen` ends the
                // search, and no place in the crate defines the name.
                Meaning::Import(path) => {
                    homes.extend(
                        self.follow(module, path, wanted, seen).into_iter().map(|(home, _)| home),
                    );
                }
                _ => {}
            }
        }
        if homes.is_empty() {
            for glob in &self.modules[module].globs {
                for (source, _) in self.follow(module, glob, Some(Namespace::Type), seen) {
                    if let Home::Module(source) = source {
                        homes.extend(self.lookup(source, name, wanted, seen));
                    }
                }
            }
        }
        // Removes this name from `seen`, because the search for another path may need the same name.
        seen.remove(&(module, name.to_owned()));
        homes
    }

    fn root(&self, module: usize) -> usize {
        let mut here = module;
        while let Some(parent) = self.modules[here].parent {
            here = parent;
        }
        here
    }
}

fn homes_of(homes: Vec<Home>, used: usize) -> Vec<(Home, usize)> {
    homes.into_iter().map(|home| (home, used)).collect()
}
