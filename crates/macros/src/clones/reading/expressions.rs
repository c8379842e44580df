//! Classes of expressions, by their form.

use syn::visit::{self, Visit};
use syn::{Expr, ExprLet, ExprMethodCall, PatIdent};

/// A visitor that collects the variables of a pattern.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.0.push(pat.ident.to_string());
        visit::visit_pat_ident(self, pat);
    }
    fn visit_expr(&mut self, _: &'ast Expr) {}
}

/// A visitor that finds a `let` in a condition.
pub(super) struct HasLet(pub(super) bool);

impl<'ast> Visit<'ast> for HasLet {
    fn visit_expr_let(&mut self, _: &'ast ExprLet) {
        self.0 = true;
    }
}

/// Returns the variable that an expression clones: `list.clone()`, `Arc::clone(&list)`.
pub(super) fn cloned_variable(expr: &Expr) -> Option<String> {
    let variable = match expr {
        Expr::MethodCall(call) if is_clone(call) => &*call.receiver,
        Expr::Call(call) => match (&*call.func, call.args.first()) {
            (Expr::Path(path), Some(Expr::Reference(argument)))
                if path.path.segments.len() > 1
                    && path.path.segments.last().is_some_and(|last| last.ident == "clone")
                    && call.args.len() == 1 =>
            {
                &*argument.expr
            }
            _ => return None,
        },
        _ => return None,
    };
    match variable {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

pub(super) fn is_clone(call: &ExprMethodCall) -> bool {
    call.method == "clone" && call.args.is_empty() && call.turbofish.is_none()
}

/// Returns whether an expression makes a value without a name.
pub(super) fn makes_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(_) | Expr::MethodCall(_) | Expr::Macro(_) | Expr::Try(_) | Expr::Await(_))
}

/// Returns whether the method is known to return no borrow.
pub(super) fn returns_no_borrow(call: &ExprMethodCall) -> bool {
    const NAMES: [&str; 7] = ["is_empty", "len", "split_off", "swap_remove", "to_owned", "to_string", "to_vec"];
    NAMES.iter().any(|name| call.method == name)
}

/// Returns whether the method sends a message, which owns its arguments.
pub(super) fn sends(call: &ExprMethodCall) -> bool {
    ["ask", "tell", "tell_urgent", "try_tell"].iter().any(|name| call.method == name)
}

/// Returns whether an expression has branches or a body, whose statements are read one by one.
pub(super) fn is_block_like(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::If(_)
            | Expr::Match(_)
            | Expr::Block(_)
            | Expr::Unsafe(_)
            | Expr::Loop(_)
            | Expr::While(_)
            | Expr::ForLoop(_)
    )
}

/// Returns whether an expression names a place, so that no temporary value is made.
pub(super) fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_place),
        _ => false,
    }
}
