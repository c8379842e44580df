//! The additions of `#[actor(remote)]` and `#[message(remote)]`: names and forms on the wire, and entries of the
//! binary's list.
//!
//! The entries are those of `playhouse::remote!`, each under the `#[cfg]`s of its method.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::options::ActorOptions;
use crate::method::{MessageMethod, emit};
use crate::syntax::errors::{Errors, pretty};
use crate::syntax::generics::ActorType;
use crate::syntax::wire::{Reach, WireName};

/// Returns the reach of the actor by its options, and reports contradictions.
pub(crate) fn reach(options: &ActorOptions, actor: &ActorType, errors: &mut Errors) -> Reach {
    if options.more.is_some() && !is_only_more(options, errors) {
        return Reach::Invalid;
    }
    if options.remote.is_none() && options.mobile.is_none() {
        if let Some(spawn) = &options.spawn {
            let text = "other theaters can only start an actor that is remote\n\
                        help: write `#[actor(remote, spawn)]`";
            errors.at(spawn, text);
            return Reach::Invalid;
        }
        return Reach::Local;
    }
    let generic = &actor.generics.params;
    if !generic.is_empty() {
        let text = format!(
            "a remote actor cannot be generic, because it is found by its name\n\
             help: write the block for one type, as in `impl {}<u64> {{ .. }}`, or remove `remote`",
            actor.name
        );
        errors.at(generic, text);
        return Reach::Invalid;
    }
    Reach::Remote
}

/// Returns whether a block with `more` has no options of the actor itself, and reports those that it has.
fn is_only_more(options: &ActorOptions, errors: &mut Errors) -> bool {
    let help = "help: a block with `more` takes only `remote` besides, which makes its messages remote";
    for path in [&options.spawn, &options.mobile].into_iter().flatten() {
        let text = format!("`{}` belongs to the actor's block without `more`\n{help}", pretty(path));
        errors.at(path, text);
    }
    if let Some(WireName::Given(name)) = &options.remote {
        errors.at(name, format!("the actor's name on the wire belongs to its block without `more`\n{help}"));
        return false;
    }
    options.spawn.is_none() && options.mobile.is_none()
}

/// Returns `impl Remote`, and the entries of the messages and of the start of a remote actor. A block with `more` has
/// only the entries of its messages.
pub(crate) fn entries(options: &ActorOptions, actor: &ActorType, messages: &[MessageMethod]) -> TokenStream {
    let ty = &actor.ty;
    if options.more.is_some() {
        return messages
            .iter()
            .filter(|method| method.wire.is_some())
            .map(|method| emit::entry(method, actor))
            .collect();
    }
    let span = Span::mixed_site().located_at(ty.span());
    let name = match &options.remote {
        Some(WireName::Given(name)) => quote!(#name),
        _ => quote_spanned!(span=> ::core::any::type_name::<Self>()),
    };
    let handles = messages.iter().filter(|method| method.wire.is_some()).map(|method| emit::entry(method, actor));
    let mobile = options.mobile.is_some();
    let spawns = (mobile || options.spawn.is_some()).then(|| {
        let how = Ident::new(if mobile { "mobile" } else { "of" }, span);
        quote_spanned!(span=> ::playhouse::__macros::submit! { ::playhouse::__macros::Spawns::#how::<#ty>() })
    });
    let mobile = mobile.then(|| quote_spanned!(span=> #[automatically_derived] impl ::playhouse::Mobile for #ty {}));
    let is_mobile = options.mobile.is_some();
    quote_spanned! {span=>
        #mobile
        #[automatically_derived]
        impl ::playhouse::__macros::Remote for #ty {
            const MOBILE: bool = #is_mobile;

            fn wire_name() -> &'static str {
                #name
            }
        }
        #(#handles)*
        #spawns
    }
}
