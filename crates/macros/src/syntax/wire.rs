//! Names on the wire.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::LitStr;
use syn::meta::ParseNestedMeta;

use super::arguments;

/// The name of an actor or a message on the wire.
pub(crate) enum WireName {
    /// The path of the type.
    OfType,
    /// `remote = ".."`
    Given(LitStr),
}

impl WireName {
    /// Reads the part after `remote`: nothing, or `= ".."`.
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

    /// Returns the `const WIRE` of a message. An error about a missing wire form is shown at `span`.
    pub(crate) fn constant(&self, span: Span) -> TokenStream {
        let form = match self {
            Self::OfType => quote_spanned!(span=> ::playhouse::__macros::WireForm::of()),
            Self::Given(name) => quote_spanned!(span=> ::playhouse::__macros::WireForm::named(#name)),
        };
        quote! {
            const WIRE: ::core::option::Option<::playhouse::__macros::WireForm<Self>> =
                ::core::option::Option::Some(#form);
        }
    }
}

/// The reach of an actor: the origin of its messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Messages of its own system.
    Local,
    /// Messages of other theaters too.
    Remote,
    /// The actor was meant to be remote and cannot be. The error is reported, and needs no further ones.
    Invalid,
}
