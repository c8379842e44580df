//! `#[warn_needless_clones]`: warnings about clones whose original is unused afterwards.
//!
//! The module [reading] finds the uses of variables in the text. The compiler knows types, and decides in
//! `playhouse::__macros::clones` about references and cloned values.

mod marks;
mod reading;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ImplItemFn, Item, ItemFn, Signature, TraitItemFn, parse_quote_spanned};

use self::marks::{Mark, unmark};
use crate::syntax::errors::Errors;

/// Expands `#[warn_needless_clones] item`.
pub(crate) fn expand(args: &TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    if !args.is_empty() {
        errors.at(args, "`#[warn_needless_clones]` takes no arguments");
    }
    match syn::parse2::<Item>(item.clone()) {
        Ok(mut parsed @ (Item::Fn(_) | Item::Impl(_) | Item::Mod(_) | Item::Trait(_))) => {
            FunctionVisitor.visit_item_mut(&mut parsed);
            let errors = errors.into_tokens();
            quote!(#parsed #errors)
        }
        // The item may be a method of a block, even one without a body.
        parsed => {
            if let Ok(mut method) = syn::parse2::<ImplItemFn>(item.clone()) {
                FunctionVisitor.visit_impl_item_fn_mut(&mut method);
                let errors = errors.into_tokens();
                return quote!(#method #errors);
            }
            match parsed {
                Ok(other) => {
                    errors.at(other, "`#[warn_needless_clones]` goes on functions, and on items with functions")
                }
                Err(error) => errors.add(error),
            }
            let errors = errors.into_tokens();
            quote!(#item #errors)
        }
    }
}

/// A visitor of all functions of an item, including nested ones.
struct FunctionVisitor;

impl VisitMut for FunctionVisitor {
    fn visit_item_fn_mut(&mut self, function: &mut ItemFn) {
        visit_mut::visit_item_fn_mut(self, function);
        check(&function.sig, &mut function.block);
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut ImplItemFn) {
        visit_mut::visit_impl_item_fn_mut(self, function);
        check(&function.sig, &mut function.block);
    }

    fn visit_trait_item_fn_mut(&mut self, function: &mut TraitItemFn) {
        visit_mut::visit_trait_item_fn_mut(self, function);
        if let Some(block) = &mut function.default {
            check(&function.sig, block);
        }
    }
}

fn check(sig: &Signature, block: &mut Block) {
    let dead = reading::dead_clones(sig, block);
    Rewriter { dead }.visit_block_mut(block);
}

/// A visitor that adds a question for the compiler to each clone that may be needless.
struct Rewriter {
    /// Whether each site is dead.
    dead: Vec<bool>,
}

impl VisitMut for Rewriter {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        match unmark(expr) {
            Some(Mark::Variable(site)) if self.dead[site] => ask_of_variable(expr),
            Some(Mark::Value) => ask_of_value(expr),
            _ => {}
        }
    }
}

fn ask_of_variable(expr: &mut Expr) {
    let (original, span) = match &*expr {
        Expr::MethodCall(call) => (call.receiver.to_token_stream(), call.method.span()),
        Expr::Call(call) => match call.args.first() {
            Some(Expr::Reference(argument)) => (argument.expr.to_token_stream(), call.span()),
            _ => return,
        },
        _ => return,
    };
    let span = Span::mixed_site().located_at(span);
    let warning = warning(span);
    *expr = parse_quote_spanned! {span=>
        (match (::playhouse::__macros::clones::original(&#original), #expr) { (types, clone) => #warning })
    };
}

fn ask_of_value(expr: &mut Expr) {
    let Expr::MethodCall(call) = &*expr else { return };
    let (receiver, method) = (&call.receiver, &call.method);
    let span = Span::mixed_site().located_at(method.span());
    let warning = warning(span);
    // The `ref` keeps the value alive to the end of its statement, as without the macro.
    *expr = parse_quote_spanned! {span=>
        (match #receiver {
            ref original => match (::playhouse::__macros::clones::original(original), (*original).#method()) {
                (types, clone) => #warning
            }
        })
    };
}

/// Returns code that warns if the types say so. `types` and `clone` are in scope, and `clone` is the result.
fn warning(span: Span) -> TokenStream {
    quote_spanned! {span=> {
        #[allow(unused_imports)]
        use ::playhouse::__macros::clones::{Needed as _, Needless as _};
        (&types.and(&clone)).cloned();
        clone
    }}
}
