//! What `#[actor(remote)]` and `#[message(remote)]` add: names and forms on the wire, and entries of the binary's list.
//!
//! The entries are those of `playhouse::remote!`, but each is under the `#[cfg]`s of its method.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::LitStr;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;

use crate::emit;
use crate::errors::{Errors, pretty};
use crate::generics::ActorType;
use crate::method::MessageMethod;
use crate::options::{self, ActorOptions};

/// What an actor or a message is called on the wire.
pub(crate) enum WireName {
    /// As its type, with the path.
    OfType,
    /// `remote = ".."`
    Given(LitStr),
}

impl WireName {
    /// Reads what follows `remote`: nothing, or `= ".."`.
    pub(crate) fn read(meta: &ParseNestedMeta<'_>, example: &str) -> syn::Result<Self> {
        if !options::has_value(meta) {
            return Ok(Self::OfType);
        }
        let name = options::string(meta, "the name on the wire", "remote", example)?;
        if name.value().trim().is_empty() {
            return Err(syn::Error::new_spanned(&name, "a name on the wire cannot be empty"));
        }
        Ok(Self::Given(name))
    }

    /// `const WIRE` of a message, for its `impl Message`; what has no wire form is shown at `span`.
    pub(crate) fn constant(&self, span: Span) -> TokenStream {
        let form = match self {
            Self::OfType => quote_spanned!(span=> ::playhouse::wire::WireForm::of()),
            Self::Given(name) => quote_spanned!(span=> ::playhouse::wire::WireForm::named(#name)),
        };
        quote! {
            const WIRE: ::core::option::Option<::playhouse::wire::WireForm<Self>> =
                ::core::option::Option::Some(#form);
        }
    }
}

/// From where messages come to an actor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// From its own system.
    Local,
    /// From other theaters too.
    Remote,
    /// It was meant to be remote and cannot be, which is reported: nothing more is to be said of it.
    Refused,
}

/// What the options say of the actor; reports where it cannot be so.
pub(crate) fn reach(options: &ActorOptions, actor: &ActorType, errors: &mut Errors) -> Reach {
    if options.more.is_some() && !is_only_more(options, errors) {
        return Reach::Refused;
    }
    if options.remote.is_none() && options.mobile.is_none() {
        if let Some(spawn) = &options.spawn {
            let text = "an actor that other theaters can start is one that they can send to\n\
                        help: write `#[actor(remote, spawn)]`";
            errors.at(spawn, text);
            return Reach::Refused;
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
        return Reach::Refused;
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
