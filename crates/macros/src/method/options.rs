//! The arguments of `#[message(..)]` on a method.

use proc_macro2::Ident;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Meta, Path, Token};

use super::name;
use crate::syntax::arguments::{alone, string};
use crate::syntax::errors::{Errors, pretty};
use crate::syntax::wire::{Reach, WireName};

/// A guard for examples in errors.
const GUARD: &str = "self.has_room()";

/// The fate of a message whose guard does not hold.
#[derive(Clone, Copy)]
pub(crate) enum Otherwise {
    /// The message waits.
    Defer,
    /// `otherwise = "refuse"`
    Refuse,
    /// `otherwise = "drop"`
    Drop,
}

/// `when = ".."`, with `otherwise = ".."` if given
pub(crate) struct When {
    /// The guard, an expression of `self` and the arguments.
    pub(crate) guard: Expr,
    /// The fate of the message if the guard does not hold.
    pub(crate) otherwise: Otherwise,
}

/// The arguments of `#[message(..)]`.
#[derive(Default)]
pub(crate) struct MessageOptions {
    /// `name = ".."`
    pub(crate) name: Option<Ident>,
    /// `derive(..)`
    pub(crate) derives: Vec<Path>,
    /// `when = ".."`
    when: Option<(Path, Expr)>,
    /// `otherwise = ".."`
    otherwise: Option<(Path, Otherwise)>,
    /// `remote` or `remote = ".."`
    remote: Option<(Path, WireName)>,
    /// `local`
    local: Option<Path>,
    /// `named`
    pub(crate) named: Option<Path>,
    /// `reentrant`
    pub(crate) reentrant: Option<Path>,
}

impl MessageOptions {
    /// Reads the attribute of a method.
    pub(crate) fn parse(attr: &Attribute) -> syn::Result<Self> {
        let mut options = Self::default();
        match &attr.meta {
            Meta::Path(_) => return Ok(options),
            Meta::NameValue(pair) => {
                let text = "`#[message]` takes its arguments in parentheses: `#[message(name = \"..\")]`";
                return Err(syn::Error::new_spanned(pair, text));
            }
            Meta::List(_) => {}
        }
        attr.parse_nested_meta(|meta| options.argument(&meta))?;
        Ok(options)
    }

    fn argument(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        if meta.path.is_ident("name") {
            if self.name.is_some() {
                return Err(meta.error("`name` is given twice"));
            }
            self.name = Some(name::given(&string(meta, "the name", "name", "Increment")?)?);
            Ok(())
        } else if meta.path.is_ident("derive") {
            if !meta.input.peek(syn::token::Paren) {
                return Err(meta.error("`derive` lists traits in parentheses: `derive(Debug, Clone)`"));
            }
            let list;
            syn::parenthesized!(list in meta.input);
            let derives = Punctuated::<Path, Token![,]>::parse_terminated(&list)?;
            for derive in derives {
                if derive.segments.last().is_some_and(|last| last.ident == "Message") {
                    let text = "`#[actor]` writes `impl Message` for this message itself";
                    return Err(syn::Error::new_spanned(derive, text));
                }
                self.derives.push(derive);
            }
            Ok(())
        } else if meta.path.is_ident("when") {
            let text = string(meta, "the guard", "when", GUARD)?;
            let guard = text.parse().map_err(|error| {
                let form = format!("the guard is an expression of the type `bool`: `when = \"{GUARD}\"`");
                syn::Error::new(text.span(), format!("{form}\nnote: {error}"))
            })?;
            if self.when.replace((meta.path.clone(), guard)).is_some() {
                return Err(meta.error("`when` is given twice\nhelp: join the two guards with `&&`"));
            }
            Ok(())
        } else if meta.path.is_ident("otherwise") {
            let text = string(meta, "the fate of the message if its guard does not hold", "otherwise", "refuse")?;
            let otherwise = match text.value().as_str() {
                "refuse" => Otherwise::Refuse,
                "drop" => Otherwise::Drop,
                other => {
                    let text = format!(
                        "unknown word {other:?}: `otherwise` is \"refuse\" (asks fail, tells are dead letters) or \"drop\"\n\
                         help: without `otherwise`, the message waits until its guard holds"
                    );
                    return Err(meta.error(text));
                }
            };
            if self.otherwise.replace((meta.path.clone(), otherwise)).is_some() {
                return Err(meta.error("`otherwise` is given twice"));
            }
            Ok(())
        } else if meta.path.is_ident("remote") {
            if self.remote.is_some() {
                return Err(meta.error("`remote` is given twice"));
            }
            self.remote = Some((meta.path.clone(), WireName::read(meta, "add")?));
            Ok(())
        } else if meta.path.is_ident("local") {
            if self.local.replace(meta.path.clone()).is_some() {
                return Err(meta.error("`local` is given twice"));
            }
            alone(meta)
        } else if meta.path.is_ident("named") {
            if self.named.replace(meta.path.clone()).is_some() {
                return Err(meta.error("`named` is given twice"));
            }
            alone(meta)
        } else if meta.path.is_ident("reentrant") {
            if self.reentrant.replace(meta.path.clone()).is_some() {
                return Err(meta.error("`reentrant` is given twice"));
            }
            alone(meta)
        } else if meta.path.is_ident("reply") {
            Err(meta.error(
                "the reply of a message method is its return type\n\
                 help: remove `reply`; it is for `#[derive(Message)]`",
            ))
        } else {
            Err(meta.error(format!(
                "unknown argument `{}`: `#[message]` on a method takes `name = \"..\"`, `named`, `reentrant`, `derive(..)`, `when = \"..\"` and \
                 `otherwise = \"..\"`, and under `#[actor(remote)]` also `remote = \"..\"` and `local`",
                pretty(&meta.path)
            )))
        }
    }

    /// Returns the guard of the message, if any.
    pub(crate) fn when(&mut self, errors: &mut Errors) -> Option<When> {
        match (self.when.take(), self.otherwise.take()) {
            (Some((_, guard)), otherwise) => {
                Some(When { guard, otherwise: otherwise.map_or(Otherwise::Defer, |(_, otherwise)| otherwise) })
            }
            (None, Some((path, _))) => {
                let text = format!(
                    "`otherwise` sets the fate of the message if its guard does not hold, and there is no guard\n\
                     help: add one, such as `when = \"{GUARD}\"`"
                );
                errors.at(&path, text);
                None
            }
            (None, None) => None,
        }
    }

    /// Returns the name of the message on the wire, if it is remote.
    pub(crate) fn wire(&mut self, reach: Reach, errors: &mut Errors) -> Option<WireName> {
        if let (Some((remote, _)), Some(_)) = (&self.remote, &self.local) {
            let text = "`local` keeps the message off the wire, and `remote` puts it there\nhelp: remove one of them";
            errors.at(remote, text);
            return None;
        }
        match reach {
            Reach::Remote if self.local.is_none() => {
                for derive in &self.derives {
                    let name = derive.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                    if name == "Serialize" || name == "Deserialize" {
                        let text = format!("`#[actor(remote)]` derives `{name}` for this message itself");
                        errors.at(derive, text);
                    }
                }
                Some(self.remote.take().map_or(WireName::OfType, |(_, name)| name))
            }
            Reach::Local => {
                self.check_local(errors);
                None
            }
            Reach::Remote | Reach::Invalid => None,
        }
    }

    /// Reports arguments that only messages of remote actors may have.
    fn check_local(&self, errors: &mut Errors) {
        if let Some((remote, _)) = &self.remote {
            let text = "the actor is not remote, so its messages cannot be remote\n\
                        help: write `#[actor(remote)]`, and `#[message(local)]` on each method that is not to be remote";
            errors.at(remote, text);
        }
        if let Some(local) = &self.local {
            let text =
                "all messages of this actor are local\nhelp: remove `local`; it is for `#[actor(remote)]` blocks";
            errors.at(local, text);
        }
    }
}
