//! Arguments of attributes.

use syn::meta::ParseNestedMeta;
use syn::{Expr, ExprLit, ExprPath, Lit, LitStr, Token};

use super::errors::pretty;

/// Reads the string of `key = ".."`.
pub(crate) fn string(meta: &ParseNestedMeta<'_>, what: &str, key: &str, example: &str) -> syn::Result<LitStr> {
    let form = |example: &str| format!("{what} is given as a string: `{key} = \"{example}\"`");
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(form(example)));
    }
    match meta.value()?.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        Expr::Path(ExprPath { path, .. }) => Err(syn::Error::new_spanned(&path, form(&pretty(&path)))),
        other => Err(syn::Error::new_spanned(other, form(example))),
    }
}

/// Checks that an argument has no value.
pub(crate) fn alone(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if has_value(meta) { Err(meta.error(format!("`{}` takes no value", pretty(&meta.path)))) } else { Ok(()) }
}

/// Returns whether an argument has a value.
pub(crate) fn has_value(meta: &ParseNestedMeta<'_>) -> bool {
    meta.input.peek(Token![=]) || meta.input.peek(syn::token::Paren)
}

pub(crate) fn at_end(meta: &ParseNestedMeta<'_>) -> bool {
    meta.input.is_empty() || meta.input.peek(Token![,])
}
