//! Marks on clones, between reading and rewriting.

use proc_macro2::{Ident, Span};
use quote::quote;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, MetaNameValue, parse_quote};

/// A mark on a clone.
pub(super) enum Mark {
    /// The clone of a variable, by the number of its site.
    Variable(usize),
    /// The clone of a value without a name.
    Value,
}

/// The name of the attribute that carries a mark.
const MARK: &str = "__playhouse_clone";

pub(super) fn mark(expr: &mut Expr, mark: Mark) {
    let site = match mark {
        Mark::Variable(site) => quote!(= #site),
        Mark::Value => quote!(),
    };
    let name = Ident::new(MARK, Span::mixed_site());
    if let Some(attrs) = attributes(expr) {
        attrs.push(parse_quote!(#[#name #site]));
    }
}

pub(super) fn unmark(expr: &mut Expr) -> Option<Mark> {
    let attrs = attributes(expr)?;
    let at = attrs.iter().position(|attr| attr.path().is_ident(MARK))?;
    match attrs.remove(at).meta {
        Meta::NameValue(MetaNameValue { value: Expr::Lit(ExprLit { lit: Lit::Int(site), .. }), .. }) => {
            site.base10_parse().ok().map(Mark::Variable)
        }
        _ => Some(Mark::Value),
    }
}

fn attributes(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    match expr {
        Expr::MethodCall(call) => Some(&mut call.attrs),
        Expr::Call(call) => Some(&mut call.attrs),
        _ => None,
    }
}
