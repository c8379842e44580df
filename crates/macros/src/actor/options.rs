//! The arguments of `#[actor(..)]`.

use proc_macro2::{TokenStream, TokenTree};
use syn::Path;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;

use crate::syntax::arguments::{alone, at_end};
use crate::syntax::errors::{Errors, pretty};
use crate::syntax::wire::WireName;

/// The arguments of `#[actor(..)]`.
#[derive(Default)]
pub(crate) struct ActorOptions {
    /// `remote` or `remote = ".."`
    pub(crate) remote: Option<WireName>,
    /// `spawn`
    pub(crate) spawn: Option<Path>,
    /// `mobile`
    pub(crate) mobile: Option<Path>,
    /// `more`: the block adds messages to an actor whose first block lacks `more`
    pub(crate) more: Option<Path>,
}

impl ActorOptions {
    /// Reads the arguments of the attribute. Unknown arguments are reported and skipped.
    pub(crate) fn parse(args: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let all = syn::meta::parser(|meta| {
            let argument = options.argument(&meta);
            if argument.is_ok() && !at_end(&meta) {
                errors.add(meta.input.error("expected `,`"));
            }
            errors.keep(argument);
            while !at_end(&meta) {
                meta.input.parse::<TokenTree>()?;
            }
            Ok(())
        });
        if let Err(error) = all.parse2(args) {
            errors.add(syn::Error::new(
                error.span(),
                "expected `remote`, `remote = \"..\"`, `spawn`, `mobile` or `more`",
            ));
        }
        options
    }

    fn argument(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        if meta.path.is_ident("remote") {
            if self.remote.is_some() {
                return Err(meta.error("`remote` is given twice"));
            }
            // The actor is meant to be remote even if the name is wrong.
            let name = self.remote.insert(WireName::OfType);
            *name = WireName::read(meta, "shop.Counter")?;
            Ok(())
        } else if meta.path.is_ident("spawn") {
            if self.spawn.replace(meta.path.clone()).is_some() {
                return Err(meta.error("`spawn` is given twice"));
            }
            alone(meta)
        } else if meta.path.is_ident("mobile") {
            if self.mobile.replace(meta.path.clone()).is_some() {
                return Err(meta.error("`mobile` is given twice"));
            }
            alone(meta)
        } else if meta.path.is_ident("more") {
            if self.more.replace(meta.path.clone()).is_some() {
                return Err(meta.error("`more` is given twice"));
            }
            alone(meta)
        } else {
            let help = if meta.path.is_ident("name") {
                "\nhelp: the name of an actor's type on the wire is given with `remote = \"..\"`"
            } else {
                ""
            };
            Err(syn::Error::new_spanned(
                &meta.path,
                format!(
                    "unknown argument `{}`: `#[actor]` takes `remote`, `remote = \"..\"`, `spawn`, `mobile` and `more`{help}",
                    pretty(&meta.path)
                ),
            ))
        }
    }
}
