//! `#[derive(Message)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Fields, Meta, Type, parse_quote};

use crate::syntax::errors::{Errors, pretty};
use crate::syntax::owned::{self, Owner};
use crate::syntax::wire::WireName;

const FORM: &str = "`#[message(reply = Type)]`";
const REMOTE_FORM: &str = "`#[message(remote)]`";

/// Expands the derive.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(input) = errors.keep(syn::parse2::<DeriveInput>(item)) else {
        return errors.into_tokens();
    };
    check_shape(&input, &mut errors);
    let mut options = Options::default();
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("message")) {
        errors.keep(options.read(attr));
    }
    let Options { reply, remote } = options;
    if let Some(reply) = &reply {
        owned::check(reply, Owner::DerivedReply, remote.is_some(), &mut errors);
    }
    let generic = !input.generics.params.is_empty();
    if let (Some(WireName::Given(name)), true) = (&remote, generic) {
        let text = "a generic message is many types, which cannot share this name on the wire\n\
                    help: write `remote` alone, so that each type has its path as the name, or make the message one type";
        errors.at(name, text);
    }
    let errors = errors.into_tokens();
    if !errors.is_empty() {
        return errors;
    }
    let reply = reply.unwrap_or_else(|| parse_quote!(()));
    let mut generics = input.generics;
    for param in generics.type_params_mut() {
        param.bounds.push(parse_quote!(::core::marker::Send));
        param.bounds.push(parse_quote!('static));
    }
    if remote.is_some() && generic {
        let clause = generics.make_where_clause();
        for ty in [&parse_quote!(Self), &reply] {
            clause.predicates.push(parse_quote!(#ty: ::playhouse::__macros::serde::Serialize));
            clause.predicates.push(parse_quote!(#ty: ::playhouse::__macros::serde::de::DeserializeOwned));
        }
    }
    let (generics, arguments, clause) = generics.split_for_impl();
    let name = input.ident;
    let wire = remote.map(|wire| wire.constant(Span::mixed_site().located_at(name.span())));
    quote! {
        #[automatically_derived]
        impl #generics ::playhouse::Message for #name #arguments #clause {
            type Reply = #reply;
            #wire
        }
    }
}

/// Checks that the message is a struct or an enum that owns its data.
fn check_shape(input: &DeriveInput, errors: &mut Errors) {
    for lifetime in input.generics.lifetimes() {
        let text = format!(
            "a message is moved to its actor, so it cannot borrow for `{}`\n\
             help: own the data, with `String`, `Vec` or `Arc`",
            pretty(&lifetime.lifetime)
        );
        errors.at(lifetime, text);
    }
    match &input.data {
        Data::Struct(data) => check_fields(&data.fields, errors),
        Data::Enum(data) => {
            for variant in &data.variants {
                refuse(&variant.attrs, "a variant", errors);
                check_fields(&variant.fields, errors);
            }
        }
        Data::Union(data) => errors.at(data.union_token, "a message is a struct or an enum, not a union"),
    }
}

fn check_fields(fields: &Fields, errors: &mut Errors) {
    for field in fields {
        refuse(&field.attrs, "a field", errors);
    }
}

fn refuse(attrs: &[Attribute], place: &str, errors: &mut Errors) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("message")) {
        errors.at(attr, format!("`#[message(..)]` goes on the whole message, not on {place}"));
    }
}

/// The arguments of `#[message(..)]`.
#[derive(Default)]
struct Options {
    /// `reply = Type`
    reply: Option<Type>,
    /// `remote` or `remote = ".."`
    remote: Option<WireName>,
}

impl Options {
    /// Reads one attribute.
    fn read(&mut self, attr: &Attribute) -> syn::Result<()> {
        if !matches!(attr.meta, Meta::List(_)) {
            return Err(syn::Error::new_spanned(attr, format!("expected {FORM} or {REMOTE_FORM}")));
        }
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("reply") {
                if self.reply.is_some() {
                    return Err(meta.error("`reply` is given twice"));
                }
                if !meta.input.peek(syn::Token![=]) {
                    return Err(meta.error(format!("`reply` needs a type: {FORM}")));
                }
                let value = meta.value()?;
                if let Ok(text) = value.fork().parse::<syn::LitStr>() {
                    let help = format!("`reply` is a type, not a string\nhelp: write `reply = {}`", text.value());
                    return Err(syn::Error::new(text.span(), help));
                }
                self.reply = Some(value.parse()?);
                Ok(())
            } else if meta.path.is_ident("remote") {
                if self.remote.is_some() {
                    return Err(meta.error("`remote` is given twice"));
                }
                self.remote = Some(WireName::read(&meta, "shop.Order")?);
                Ok(())
            } else {
                let help = if ["name", "derive", "local"].iter().any(|name| meta.path.is_ident(name)) {
                    "\nhelp: that is for `#[message]` on a method in an `#[actor]` block"
                } else {
                    ""
                };
                let unknown = pretty(&meta.path);
                Err(meta.error(format!("unknown argument `{unknown}`: expected {FORM} or {REMOTE_FORM}{help}")))
            }
        })
    }
}
