//! What an expression is, by its form.

use syn::visit::{self, Visit};
use syn::{Expr, ExprLet, ExprMethodCall, PatIdent};

/// The variables of a pattern.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.0.push(pat.ident.to_string());
        visit::visit_pat_ident(self, pat);
    }
    fn visit_expr(&mut self, _: &'ast Expr) {}
}

/// Whether there is a `let` in a condition.
pub(super) struct HasLet(pub(super) bool);

impl<'ast> Visit<'ast> for HasLet {
    fn visit_expr_let(&mut self, _: &'ast ExprLet) {
        self.0 = true;
    }
}

/// The variable that an expression clones: `list.clone()`, `Arc::clone(&list)`.
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

/// Whether an expression makes a value, which has no name.
pub(super) fn makes_value(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(_) | Expr::MethodCall(_) | Expr::Macro(_) | Expr::Try(_) | Expr::Await(_))
}

/// Methods of which everybody knows that nothing of what they return is borrowed.
pub(super) fn returns_no_borrow(call: &ExprMethodCall) -> bool {
    const NAMES: [&str; 7] = ["is_empty", "len", "split_off", "swap_remove", "to_owned", "to_string", "to_vec"];
    NAMES.iter().any(|name| call.method == name)
}

/// Methods that send a message, which owns what it has.
pub(super) fn sends(call: &ExprMethodCall) -> bool {
    ["ask", "tell", "tell_urgent", "try_tell"].iter().any(|name| call.method == name)
}

/// Whether an expression has branches or a body, whose statements are read for themselves.
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

/// Whether an expression names a place: no value is made for it that would live on.
pub(super) fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_place),
        _ => false,
    }
}
