//! The arguments of `#[message(..)]` on a method.

use proc_macro2::Ident;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprPath, LitStr, Meta, Path, Token};

use crate::errors::pretty;
use crate::name;

/// What `#[message(..)]` says.
#[derive(Default)]
pub(crate) struct MessageOptions {
    /// `name = ".."`
    pub(crate) name: Option<Ident>,
    /// `derive(..)`
    pub(crate) derives: Vec<Path>,
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
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                if options.name.is_some() {
                    return Err(meta.error("`name` is given twice"));
                }
                options.name = Some(name_value(&meta)?);
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
                    options.derives.push(derive);
                }
                Ok(())
            } else if meta.path.is_ident("reply") {
                Err(meta.error(
                    "the reply of a message method is its return type\n\
                     help: remove `reply`; it is for `#[derive(Message)]`",
                ))
            } else {
                Err(meta.error(format!(
                    "unknown argument `{}`: `#[message]` on a method takes `name = \"..\"` and `derive(..)`",
                    pretty(&meta.path)
                )))
            }
        })?;
        Ok(options)
    }
}

/// The value of `name = ".."`.
fn name_value(meta: &syn::meta::ParseNestedMeta<'_>) -> syn::Result<Ident> {
    const FORM: &str = "the name is given as a string: `name = \"Increment\"`";
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(FORM));
    }
    let value = meta.value()?;
    if value.peek(LitStr) {
        return name::given(&value.parse()?);
    }
    let other: Expr = value.parse()?;
    Err(match &other {
        Expr::Path(ExprPath { path, .. }) => {
            syn::Error::new_spanned(&other, format!("the name is given as a string: `name = \"{}\"`", pretty(path)))
        }
        _ => syn::Error::new_spanned(&other, FORM),
    })
}
