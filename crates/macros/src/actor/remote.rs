//! What `#[actor(remote)]` and `#[message(remote)]` add: names and forms on the wire, and entries of the binary's list.
//!
//! The entries are those of `playhouse::remote!`, but each is under the `#[cfg]`s of its method.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::options::ActorOptions;
use crate::method::{MessageMethod, emit};
use crate::syntax::errors::{Errors, pretty};
use crate::syntax::generics::ActorType;
use crate::syntax::wire::{Reach, WireName};

/// What the options say of the actor; reports where it cannot be so.
pub(crate) fn reach(options: &ActorOptions, actor: &ActorType, errors: &mut Errors) -> Reach {
    if options.more.is_some() && !is_only_more(options, errors) {
        return Reach::Invalid;
    }
    if options.remote.is_none() && options.mobile.is_none() {
        if let Some(spawn) = &options.spawn {
            let text = "an actor that other theaters can start is one that they can send to\n\
                        help: write `#[actor(remote, spawn)]`";
            errors.at(spawn, text);
            return Reach::Invalid;
        }
        return Reach::Local;
    }
    let generic = &actor.generics.params;
    if !generic.is_empty() {
        let text = format!(
            "a remote actor cannot be generic, since it is found by its name\n\
             help: write the block for one type, as in `impl {}<u64> {{ .. }}`, or remove `remote`",
            actor.name
        );
        errors.at(generic, text);
        return Reach::Invalid;
    }
    Reach::Remote
}

/// Whether nothing is said of the actor at a block with `more`; reports what is.
fn is_only_more(options: &ActorOptions, errors: &mut Errors) -> bool {
    let help = "help: a block with `more` takes only `remote` beside it, which says that its messages are";
    for path in [&options.spawn, &options.mobile].into_iter().flatten() {
        let text = format!("`{}` is said at the actor's block without `more`\n{help}", pretty(path));
        errors.at(path, text);
    }
    if let Some(WireName::Given(name)) = &options.remote {
        errors.at(name, format!("the actor's name on the wire is given at its block without `more`\n{help}"));
        return false;
    }
    options.spawn.is_none() && options.mobile.is_none()
}

/// `impl Remote`, and an entry for each message and for the start, where the actor is a remote one. Of a block with `more`, the entries of its
/// messages.
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
        quote_spanned!(span=> ::playhouse::wire::submit! { ::playhouse::wire::Spawns::#how::<#ty>() })
    });
    let mobile = mobile.then(|| quote_spanned!(span=> #[automatically_derived] impl ::playhouse::Mobile for #ty {}));
    let is_mobile = options.mobile.is_some();
    quote_spanned! {span=>
        #mobile
        #[automatically_derived]
        impl ::playhouse::wire::Remote for #ty {
            const MOBILE: bool = #is_mobile;

            fn wire_name() -> &'static str {
                #name
            }
        }
        #(#handles)*
        #spawns
    }
}
