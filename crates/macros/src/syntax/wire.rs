//! Names on the wire.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::LitStr;
use syn::meta::ParseNestedMeta;

use super::arguments;

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
        if !arguments::has_value(meta) {
            return Ok(Self::OfType);
        }
        let name = arguments::string(meta, "the name on the wire", "remote", example)?;
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
    Invalid,
}
