//! Walks the files of a crate and collects the imports of each file from the other files.
//!
//! The following count as imports: `use` declarations; paths in expressions, types and patterns; paths
//! in the arguments of macros and in the definitions of macros; uses of macros by name; and calls of a
//! type's own methods, if the method is not defined in the file of the type (a type may have `impl`
//! blocks in several folders). For a method call, the type of the receiver must be obvious: the
//! receiver is `self`, a parameter, a variable, a field of one of these, or the result of a method.
//! Calls through traits, calls on other receivers, and paths in the strings of attributes are not
//! counted.

use std::collections::{BTreeSet, HashMap};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::resolve::Home;
use super::source::{Namespace, Tree, attributes, flatten, only_tests};

/// One import: the file `from` uses the path `written` in line `line`, and the file `to` defines what
/// the path names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: String,
    pub line: usize,
    pub to: String,
    pub written: String,
}

/// Returns the imports between the files of a crate. An import of a file from itself is left out.
pub fn imports(tree: &Tree) -> BTreeSet<Import> {
    let types = Types::new(tree);
    let mut imports = BTreeSet::new();
    for (module, syntax) in &tree.files {
        let locals = HashMap::new();
        let mut walk = Walk {
            tree,
            types: &types,
            module: *module,
            this: None,
            locals,
            imports: &mut imports,
        };
        walk.visit_file(syntax);
    }
    imports
}

/// The methods (outside traits) and the fields of the types that the crate defines.
#[derive(Default)]
struct Types {
    methods: HashMap<(Home, String), Method>,
    fields: HashMap<(Home, String), Home>,
}

struct Method {
    /// The module of the `impl` block.
    module: usize,
    /// The type that the method returns, if the crate defines that type.
    gives: Option<Home>,
}

impl Types {
    fn new(tree: &Tree) -> Self {
        let mut types = Self::default();
        for (module, syntax) in &tree.files {
            types.items(tree, *module, &syntax.items);
        }
        types
    }

    fn items(&mut self, tree: &Tree, module: usize, items: &[syn::Item]) {
        for item in items.iter().filter(|item| !only_tests(attributes(item))) {
            match item {
                syn::Item::Mod(child) => {
                    let inline = tree.modules[module].inline.get(&child.ident.to_string());
                    if let (Some((_, items)), Some(inline)) = (&child.content, inline) {
                        self.items(tree, *inline, items);
                    }
                }
                syn::Item::Struct(item) => {
                    let home = Home::Item(module, item.ident.to_string());
                    for (index, field) in item.fields.iter().enumerate() {
                        let name =
                            field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
                        if let Some(field) = home_of_type(tree, module, &field.ty, None) {
                            self.fields.insert((home.clone(), name), field);
                        }
                    }
                }
                syn::Item::Impl(block) if block.trait_.is_none() => {
                    self.methods(tree, module, block)
                }
                _ => {}
            }
        }
    }

    fn methods(&mut self, tree: &Tree, module: usize, block: &syn::ItemImpl) {
        let Some(home) = home_of_type(tree, module, &block.self_ty, None) else { return };
        for item in &block.items {
            let (name, gives) = match item {
                syn::ImplItem::Fn(item) if !only_tests(&item.attrs) => {
                    let gives = match &item.sig.output {
                        syn::ReturnType::Type(_, given) => {
                            home_of_type(tree, module, given, Some(&home))
                        }
                        syn::ReturnType::Default => None,
                    };
                    (&item.sig.ident, gives)
                }
                syn::ImplItem::Const(item) if !only_tests(&item.attrs) => (&item.ident, None),
                _ => continue,
            };
            self.methods.insert((home.clone(), name.to_string()), Method { module, gives });
        }
    }
}

/// Removes references and owning pointers from a type, and returns the type that is left, if the crate
/// defines it.
fn home_of_type(
    tree: &Tree,
    module: usize,
    written: &syn::Type,
    this: Option<&Home>,
) -> Option<Home> {
    match written {
        syn::Type::Reference(inner) => home_of_type(tree, module, &inner.elem, this),
        syn::Type::Paren(inner) => home_of_type(tree, module, &inner.elem, this),
        syn::Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last()?;
            if ["Arc", "Rc", "Box"].iter().any(|pointer| last.ident == pointer) {
                let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
                    return None;
                };
                let Some(syn::GenericArgument::Type(inner)) = arguments.args.first() else {
                    return None;
                };
                return home_of_type(tree, module, inner, this);
            }
            if path.path.is_ident("Self") {
                return this.cloned();
            }
            let homes = tree.resolve(module, &segments(&path.path), Some(Namespace::Type));
            homes.into_iter().find(|home| matches!(home, Home::Item(..)))
        }
        _ => None,
    }
}

/// Returns the names in a path; an empty list if the path begins with `::` and so leads out of the
/// crate.
fn segments(path: &syn::Path) -> Vec<String> {
    if path.leading_colon.is_some() {
        return Vec::new();
    }
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

struct Walk<'a> {
    tree: &'a Tree,
    types: &'a Types,
    module: usize,
    /// The type of the `impl` block around the current code.
    this: Option<Home>,
    /// The types of the current function's variables, where the type is obvious.
    locals: HashMap<String, Home>,
    imports: &'a mut BTreeSet<Import>,
}

impl Walk<'_> {
    fn add(&mut self, to: usize, line: usize, written: &str) {
        let from = &self.tree.modules[self.module].file;
        let to = &self.tree.modules[to].file;
        if from != to {
            let (from, to, written) = (from.clone(), to.clone(), written.to_owned());
            self.imports.insert(Import { from, line, to, written });
        }
    }

    fn path(&mut self, path: &[String], line: usize, wanted: Option<Namespace>) {
        let written = path.join("::");
        if let ([first, name, ..], Some(this)) = (path, self.this.clone())
            && first == "Self"
        {
            self.method(&this, name, line, &written);
            return;
        }
        for (home, used) in self.tree.resolve_prefix(self.module, path, wanted) {
            self.add(home.module(), line, &written);
            if let Some(name) = path.get(used) {
                self.method(&home, name, line, &written);
            }
        }
    }

    /// Adds an import from the file that defines the method `name` of the type `this`.
    fn method(&mut self, this: &Home, name: &str, line: usize, written: &str) {
        if let Some(method) = self.types.methods.get(&(this.clone(), name.to_owned())) {
            self.add(method.module, line, written);
        }
    }

    /// Returns the type of an expression, if the type is obvious and the crate defines it.
    fn type_of(&self, expression: &syn::Expr) -> Option<Home> {
        match expression {
            syn::Expr::Path(path) if path.path.is_ident("self") => self.this.clone(),
            syn::Expr::Path(path) => self.locals.get(&path.path.get_ident()?.to_string()).cloned(),
            syn::Expr::Reference(inner) => self.type_of(&inner.expr),
            syn::Expr::Paren(inner) => self.type_of(&inner.expr),
            syn::Expr::Unary(inner) if matches!(inner.op, syn::UnOp::Deref(_)) => {
                self.type_of(&inner.expr)
            }
            syn::Expr::Field(field) => {
                let name = match &field.member {
                    syn::Member::Named(name) => name.to_string(),
                    syn::Member::Unnamed(index) => index.index.to_string(),
                };
                self.types.fields.get(&(self.type_of(&field.base)?, name)).cloned()
            }
            syn::Expr::MethodCall(call) => {
                let this = self.type_of(&call.receiver)?;
                self.types.methods.get(&(this, call.method.to_string()))?.gives.clone()
            }
            syn::Expr::Struct(literal) if literal.path.is_ident("Self") => self.this.clone(),
            _ => None,
        }
    }

    /// Walks a function. The variables of the code around the function do not count inside it.
    fn function(&mut self, signature: &syn::Signature, walk: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.locals);
        for input in &signature.inputs {
            if let syn::FnArg::Typed(input) = input
                && let syn::Pat::Ident(name) = &*input.pat
                && let Some(home) =
                    home_of_type(self.tree, self.module, &input.ty, self.this.as_ref())
            {
                self.locals.insert(name.ident.to_string(), home);
            }
        }
        walk(self);
        self.locals = outer;
    }

    /// Collects paths in the tokens of a macro definition, or of a macro call whose tokens are not a
    /// list of expressions. In a definition, only paths that begin with `crate`, `self` or `super` are
    /// collected; in a call, also paths that begin with another name.
    fn tokens(&mut self, tokens: TokenStream, definition: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                // Skips a visibility such as `pub(in crate::room)`, because its path imports nothing.
                TokenTree::Ident(ident) if ident == "pub" => {
                    at += 1 + usize::from(matches!(tokens.get(at + 1), Some(TokenTree::Group(_))));
                }
                TokenTree::Ident(ident) => {
                    let rooted = ["crate", "self", "super"].iter().any(|word| ident == word);
                    // True for the name in `$type::name` or `<T>::name`, which does not begin a path.
                    let tail = at >= 2 && is_separator(&tokens[at - 2..at]);
                    let (paths, next) = read_path(&tokens, at);
                    for path in paths.iter().filter(|path| path.len() > 1 && !tail) {
                        if rooted || !definition {
                            self.path(path, ident.span().start().line, None);
                        }
                    }
                    at = next;
                }
                TokenTree::Group(group) => {
                    self.tokens(group.stream(), definition);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }
}

/// Returns true if `tokens` begin with `::`.
fn is_separator(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(first), TokenTree::Punct(second), ..] = tokens else { return false };
    (first.as_char(), first.spacing(), second.as_char()) == (':', Spacing::Joint, ':')
}

/// Returns the paths that begin with the identifier at index `at` (several for `a::{b, c}`), and the
/// index of the token after them.
fn read_path(tokens: &[TokenTree], at: usize) -> (Vec<Vec<String>>, usize) {
    let TokenTree::Ident(first) = &tokens[at] else { return (Vec::new(), at + 1) };
    let mut path = vec![first.to_string()];
    let mut next = at + 1;
    while next + 2 < tokens.len() && is_separator(&tokens[next..]) {
        match &tokens[next + 2] {
            TokenTree::Ident(ident) => {
                path.push(ident.to_string());
                next += 3;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut paths = Vec::new();
                let mut place = 0;
                while place < inner.len() {
                    let (tails, end) = read_path(&inner, place);
                    paths.extend(tails.into_iter().map(|tail| [path.clone(), tail].concat()));
                    place = end;
                }
                return (paths, next + 3);
            }
            _ => break,
        }
    }
    (vec![path], next)
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !only_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let inline = self.tree.modules[self.module].inline.get(&item.ident.to_string());
        if let (Some(&inline), Some((_, items))) = (inline, &item.content) {
            let outer = std::mem::replace(&mut self.module, inline);
            items.iter().for_each(|item| self.visit_item(item));
            self.module = outer;
        }
    }

    fn visit_item_use(&mut self, declaration: &'ast syn::ItemUse) {
        let line = declaration.use_token.span.start().line;
        for (path, _) in flatten(declaration) {
            self.path(&path, line, None);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let home = home_of_type(self.tree, self.module, &block.self_ty, None);
        let outer = std::mem::replace(&mut self.this, home);
        visit::visit_item_impl(self, block);
        self.this = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, |walk| visit::visit_item_fn(walk, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(item) if only_tests(&item.attrs) => {}
            syn::ImplItem::Fn(item) => {
                self.function(&item.sig, |walk| visit::visit_impl_item_fn(walk, item));
            }
            item => visit::visit_impl_item(self, item),
        }
    }

    fn visit_fn_arg(&mut self, argument: &'ast syn::FnArg) {
        // Does not visit the pattern, because `function` has stored the type of the parameter's name,
        // and `visit_pat_ident` would remove that type.
        match argument {
            syn::FnArg::Typed(typed) => self.visit_type(&typed.ty),
            syn::FnArg::Receiver(receiver) => self.visit_type(&receiver.ty),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let (name, known) = match &local.pat {
            syn::Pat::Type(typed) => {
                (&*typed.pat, home_of_type(self.tree, self.module, &typed.ty, self.this.as_ref()))
            }
            pattern => (pattern, local.init.as_ref().and_then(|init| self.type_of(&init.expr))),
        };
        visit::visit_local(self, local);
        if let (syn::Pat::Ident(name), Some(home)) = (name, known) {
            self.locals.insert(name.ident.to_string(), home);
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.locals.remove(&pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr_path(&mut self, expression: &'ast syn::ExprPath) {
        match expression.path.get_ident() {
            Some(name) if self.locals.contains_key(&name.to_string()) => {}
            Some(name) => {
                let line = name.span().start().line;
                self.path(&[name.to_string()], line, Some(Namespace::Value));
            }
            None => visit::visit_expr_path(self, expression),
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let Some(this) = self.type_of(&call.receiver) {
            let name = call.method.to_string();
            self.method(&this, &name, call.method.span().start().line, &format!(".{name}()"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written = segments(path);
        if let [first, rest @ ..] = written.as_slice() {
            let wanted = if rest.is_empty() { Some(Namespace::Type) } else { None };
            if first != "Self" || !rest.is_empty() {
                self.path(&written, path.span().start().line, wanted);
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        let written = segments(&invocation.path);
        let line = invocation.path.span().start().line;
        let homes = self.tree.resolve(self.module, &written, Some(Namespace::Macro));
        let home = match (homes.first(), written.as_slice()) {
            (Some(home), _) => Some(home.module()),
            (None, [name]) => self.tree.macros.get(name).copied(),
            _ => None,
        };
        if let Some(home) = home {
            self.add(home, line, &format!("{}!", written.join("::")));
        }
        let expressions = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        match expressions.parse2(invocation.tokens.clone()) {
            Ok(expressions) => {
                // The parsed expressions do not live as long as the file's syntax, so a separate walk
                // visits them.
                let mut inner = Walk {
                    tree: self.tree,
                    types: self.types,
                    module: self.module,
                    this: self.this.clone(),
                    locals: self.locals.clone(),
                    imports: &mut *self.imports,
                };
                expressions.iter().for_each(|expression| inner.visit_expr(expression));
            }
            Err(_) => self.tokens(invocation.tokens.clone(), false),
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if item.ident.is_some() {
            self.tokens(item.mac.tokens.clone(), true);
        } else {
            self.visit_macro(&item.mac);
        }
    }
}
