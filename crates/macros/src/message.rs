//! `#[derive(Message)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Fields, Meta, Type, parse_quote};

use crate::errors::{Errors, pretty};
use crate::owned::{self, Owner};

const FORM: &str = "`#[message(reply = Type)]`";

/// Expands the derive.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(input) = errors.keep(syn::parse2::<DeriveInput>(item)) else {
        return errors.into_tokens();
    };
    check_shape(&input, &mut errors);
    let mut reply: Option<Type> = None;
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("message")) {
        errors.keep(read(attr, &mut reply));
    }
    if let Some(reply) = &reply {
        owned::check(reply, Owner::DerivedReply, &mut errors);
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
    let (generics, arguments, clause) = generics.split_for_impl();
    let name = input.ident;
    quote! {
        #[automatically_derived]
        impl #generics ::playhouse::Message for #name #arguments #clause {
            type Reply = #reply;
        }
    }
}

/// Messages are structs and enums that own their data.
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
        errors.at(attr, format!("{FORM} goes on the whole message, not on {place}"));
    }
}

/// Reads `#[message(reply = Type)]`.
fn read(attr: &Attribute, reply: &mut Option<Type>) -> syn::Result<()> {
    if !matches!(attr.meta, Meta::List(_)) {
        return Err(syn::Error::new_spanned(attr, format!("expected {FORM}")));
    }
    attr.parse_nested_meta(|meta| {
        if meta.path.is_ident("reply") {
            if reply.is_some() {
                return Err(meta.error("`reply` is given twice"));
            }
            if !meta.input.peek(syn::Token![=]) {
                return Err(meta.error(format!("`reply` needs a type: {FORM}")));
            }
            *reply = Some(meta.value()?.parse()?);
            Ok(())
        } else {
            let help = if meta.path.is_ident("name") || meta.path.is_ident("derive") {
                "\nhelp: that is for `#[message]` on a method in an `#[actor]` block"
            } else {
                ""
            };
            Err(meta.error(format!("unknown argument `{}`: expected {FORM}{help}", pretty(&meta.path))))
        }
    })
}
