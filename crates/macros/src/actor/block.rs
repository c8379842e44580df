//! Checks of the item under `#[actor]`.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Item, ItemImpl, Lifetime, Type};

use crate::syntax::errors::{Errors, pretty};
use crate::syntax::generics::ActorType;

/// Returns the type of the block, if it can be an actor.
pub(super) fn actor_type(block: &ItemImpl) -> syn::Result<ActorType> {
    let ty = &*block.self_ty;
    if let Some((path, _)) = &block.trait_ {
        let text = if path.segments.last().is_some_and(|last| last.ident == "Actor") {
            format!(
                "`#[actor]` writes `impl Actor` itself\n\
                 help: put it on `impl {} {{ .. }}`, and mark methods there with `#[started]` and the like",
                pretty(ty)
            )
        } else {
            format!(
                "`#[actor]` goes on the block of the type's own methods, not on an `impl` of the trait `{}`\n\
                 help: put it on `impl {} {{ .. }}`",
                pretty(path),
                pretty(ty)
            )
        };
        return Err(syn::Error::new_spanned(path, text));
    }
    let mut errors = Errors::default();
    let name = match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    };
    if name.is_none() {
        let text = format!("an actor is a struct or an enum of yours, and `{}` is neither", pretty(ty));
        errors.at(ty, text);
    }
    let mut borrowed = Lifetimes::default();
    borrowed.visit_generics(&block.generics);
    borrowed.visit_type(ty);
    if let Some(lifetime) = borrowed.first {
        let text = format!(
            "an actor moves between threads, so it cannot borrow for `{lifetime}`\n\
             help: own the data, with `String`, `Vec` or `Arc`"
        );
        errors.at(lifetime, text);
    }
    errors.or(ActorType { ty: ty.clone(), name: name.unwrap_or_default(), generics: block.generics.clone() })
}

/// A visitor that finds the first lifetime other than `'static`.
#[derive(Default)]
struct Lifetimes {
    first: Option<Lifetime>,
}

impl Visit<'_> for Lifetimes {
    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if lifetime.ident != "static" {
            self.first.get_or_insert_with(|| lifetime.clone());
        }
    }

    fn visit_trait_bound(&mut self, bound: &syn::TraitBound) {
        if bound.lifetimes.is_none() {
            visit::visit_trait_bound(self, bound);
        }
    }
}

pub(super) fn not_a_block(item: &Item) -> syn::Error {
    let (tokens, what, name) = match item {
        Item::Struct(item) => (item.struct_token.to_token_stream(), "a struct", Some(&item.ident)),
        Item::Enum(item) => (item.enum_token.to_token_stream(), "an enum", Some(&item.ident)),
        Item::Trait(item) => (item.trait_token.to_token_stream(), "a trait", None),
        Item::Fn(item) => (item.sig.fn_token.to_token_stream(), "a function", None),
        Item::Mod(item) => (item.mod_token.to_token_stream(), "a module", None),
        other => (other.to_token_stream(), "this", None),
    };
    let place = name.map_or("impl Counter { .. }".into(), |name| format!("impl {name} {{ .. }}"));
    let text = format!(
        "`#[actor]` goes on the `impl` block with the message methods, not on {what}\n\
         help: write it above `{place}`"
    );
    syn::Error::new_spanned(tokens, text)
}
