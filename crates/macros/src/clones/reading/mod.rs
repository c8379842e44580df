//! The uses of variables in a function, read from its text.
//!
//! The reader reports nothing if the text leaves a doubt:
//!
//! - A clone in a loop or a closure needs its original again, unless the original is declared in there.
//! - The run follows the text, except that the branches of an `if` or `match` exclude each other, and that nothing
//!   follows a `return`.
//! - A variable may borrow the other variables of its statement, and of later statements that mention both, as long
//!   as it is in scope. Messages own their arguments, and so do the results of methods like `len`. Parameters outlive
//!   the borrows of a function.
//! - A macro call uses all its words, including those in strings. Clones in macro calls are not found.

mod expressions;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, FnArg, Pat, Signature, UnOp};

use self::expressions::Names;

/// Marks the clones in a function. Returns for each clone of a variable whether the original is dead afterwards.
pub(super) fn dead_clones(sig: &Signature, block: &mut Block) -> Vec<bool> {
    let mut reader = UsageReader::default();
    reader.scopes.push(Vec::new());
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(_) => {}
            FnArg::Typed(input) => {
                let is_parameter = matches!(*input.pat, Pat::Ident(_));
                reader.declare(&input.pat, is_parameter, &BTreeSet::new());
            }
        }
    }
    reader.visit_block_mut(block);
    reader.sites.iter().map(|site| !reader.is_opaque && reader.is_dead(site)).collect()
}

/// A variable of the function.
struct Variable {
    name: String,
    is_parameter: bool,
    /// The number of enclosing loops and closures.
    depth: usize,
    /// The number of enclosing closures and futures.
    inner: usize,
    /// The variables that it may borrow.
    borrows: BTreeSet<usize>,
}

/// A path through branches: pairs of a fork and a branch.
type BranchPath = Vec<(usize, usize)>;

/// The clone of a variable.
struct CloneSite {
    variable: usize,
    at: usize,
    path: BranchPath,
    depth: usize,
    /// Whether a variable in scope, or a value in the statement, may borrow the original.
    is_borrowed: bool,
}

/// A statement, or the head of a branch, with the variables that it mentions.
#[derive(Default)]
struct Statement {
    mentioned: BTreeSet<usize>,
    /// The variables that are borrowed at least to its end.
    borrowed: BTreeSet<usize>,
    /// The borrowed variables that may be borrowed longer.
    kept: BTreeSet<usize>,
    sites: Vec<usize>,
}

/// A reader of a function, from its beginning to its end.
#[derive(Default)]
struct UsageReader {
    variables: Vec<Variable>,
    scopes: Vec<Vec<usize>>,
    depth: usize,
    /// The number of mentions so far, as a clock.
    now: usize,
    path: BranchPath,
    forks: usize,
    uses: BTreeMap<usize, Vec<(usize, BranchPath)>>,
    sites: Vec<CloneSite>,
    statements: Vec<Statement>,
    /// The number of enclosing arguments of messages, which own their data.
    sending: usize,
    /// The places that leave the function: the time, the branch and the depth in loops.
    returns: Vec<(usize, BranchPath, usize)>,
    /// The number of enclosing closures and futures, which a `return` leaves.
    inner: usize,
    /// Whether a block has a label, because a labelled `break` skips code.
    has_labels: bool,
    /// Whether a macro is defined in the function, because its calls may mention any variable.
    is_opaque: bool,
}

impl UsageReader {
    /// Declares the variables of a pattern, which may borrow `from`.
    fn declare(&mut self, pat: &Pat, is_parameter: bool, from: &BTreeSet<usize>) {
        let mut names = Names::default();
        names.visit_pat(pat);
        for name in names.0 {
            let variable = self.variables.len();
            let (depth, inner) = (self.depth, self.inner);
            self.variables.push(Variable { name, is_parameter, depth, inner, borrows: from.clone() });
            self.scopes.last_mut().expect("a scope").push(variable);
            for statement in &mut self.statements {
                statement.mentioned.insert(variable);
            }
        }
    }

    fn variable(&self, name: &str) -> Option<usize> {
        self.scopes
            .iter()
            .rev()
            .flat_map(|scope| scope.iter().rev())
            .copied()
            .find(|at| self.variables[*at].name == name)
    }

    fn mention(&mut self, name: &str, is_borrow: bool) {
        if let Some(variable) = self.variable(name) {
            self.use_of(variable);
            // A closure or a future borrows captured variables for as long as it lives, whatever it does with them.
            let is_captured = self.variables[variable].inner < self.inner;
            for statement in &mut self.statements {
                statement.mentioned.insert(variable);
                if is_borrow || is_captured {
                    statement.borrowed.insert(variable);
                    if self.sending == 0 || is_captured {
                        statement.kept.insert(variable);
                    }
                }
            }
        }
    }

    fn use_of(&mut self, variable: usize) {
        self.now += 1;
        self.uses.entry(variable).or_default().push((self.now, self.path.clone()));
    }

    /// Mentions all words in a macro call.
    fn mention_all(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.mention_all(group.stream()),
                TokenTree::Ident(name) => self.mention(&name.to_string(), true),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                        self.mention(word, true);
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }

    /// Visits an expression whose value may keep a borrow of the variables in it.
    fn borrow(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => self.mention(&name.to_string(), true),
                None => visit_mut::visit_expr_path_mut(self, path),
            },
            Expr::Field(field) => self.borrow(&mut field.base),
            Expr::Paren(paren) => self.borrow(&mut paren.expr),
            Expr::Group(group) => self.borrow(&mut group.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.borrow(&mut unary.expr),
            Expr::Index(index) => {
                self.borrow(&mut index.expr);
                self.visit_expr_mut(&mut index.index);
            }
            other => self.visit_expr_mut(other),
        }
    }

    /// Reads one statement, or the head of a branch. Its declared variables may borrow the mentioned ones. Returns
    /// the borrowed variables.
    fn statement(&mut self, read: impl FnOnce(&mut Self)) -> BTreeSet<usize> {
        self.statements.push(Statement::default());
        read(self);
        let statement = self.statements.pop().expect("it was pushed above");
        for site in &statement.sites {
            let site = &mut self.sites[*site];
            site.is_borrowed |= statement.borrowed.contains(&site.variable);
        }
        let mut borrowed = statement.kept;
        borrowed.extend(statement.mentioned.iter().flat_map(|at| &self.variables[*at].borrows));
        for at in &statement.mentioned {
            let variable = &mut self.variables[*at];
            if !variable.is_parameter {
                variable.borrows.extend(borrowed.iter().filter(|borrowed| *borrowed != at));
            }
        }
        borrowed
    }

    /// Marks the sites from `first` on as borrowed, because an unnamed value of a branch's head may live to the end
    /// of the branch.
    fn keep(&mut self, borrowed: &BTreeSet<usize>, first: usize) {
        for site in &mut self.sites[first..] {
            site.is_borrowed |= borrowed.contains(&site.variable);
        }
    }

    fn scope(&mut self, read: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        read(self);
        self.scopes.pop();
    }

    /// Reads code that may run again, or later, or never.
    fn repeated(&mut self, read: impl FnOnce(&mut Self)) {
        self.depth += 1;
        self.scope(read);
        self.depth -= 1;
    }

    fn branch(&mut self, fork: usize, path: usize, read: impl FnOnce(&mut Self)) {
        self.path.push((fork, path));
        self.scope(read);
        self.path.pop();
    }

    /// Reads code that may be skipped, and whose variables stay in scope.
    fn optional(&mut self, read: impl FnOnce(&mut Self)) {
        let fork = self.fork();
        self.path.push((fork, 0));
        read(self);
        self.path.pop();
    }

    fn fork(&mut self) -> usize {
        self.forks += 1;
        self.forks
    }

    /// Adds the clone of a variable. Returns the number of its site.
    fn clone_of(&mut self, name: &str) -> Option<usize> {
        let variable = self.variable(name)?;
        self.mention(name, false);
        let is_borrowed = self.scopes.iter().flatten().any(|other| self.variables[*other].borrows.contains(&variable));
        let number = self.sites.len();
        self.sites.push(CloneSite { variable, at: self.now, path: self.path.clone(), depth: self.depth, is_borrowed });
        for statement in &mut self.statements {
            statement.sites.push(number);
        }
        Some(number)
    }

    /// Returns whether no later code needs the variable of a site.
    fn is_dead(&self, site: &CloneSite) -> bool {
        let is_end = |(at, path, depth): &&(usize, BranchPath, usize)| {
            *at > site.at && site.path.starts_with(path) && *depth == site.depth && !self.has_labels
        };
        let end = self.returns.iter().find(is_end).map_or(usize::MAX, |(at, ..)| *at);
        let is_later =
            |(at, path): &(usize, BranchPath)| site.at < *at && *at < end && !exclude_each_other(path, &site.path);
        site.depth == self.variables[site.variable].depth
            && !site.is_borrowed
            && !self.uses[&site.variable].iter().any(is_later)
    }
}

/// Returns whether two places are in different branches of a fork.
fn exclude_each_other(one: &BranchPath, other: &BranchPath) -> bool {
    one.iter().zip(other).find(|(one, other)| one != other).is_some_and(|(one, other)| one.0 == other.0)
}
