//! `#[message]` outside of an `#[actor]` block.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Item;

/// Expands a `#[message]` outside of an `#[actor]` block to the `item` and an error.
pub(crate) fn message_outside(item: TokenStream) -> TokenStream {
    let text = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(_) | Item::Enum(_)) => {
            "`#[message]` marks a method of an actor\n\
             help: a type of your own becomes a message with `#[derive(Message)]`, and `#[message(..)]` stands below that"
        }
        _ => {
            "`#[message]` marks a method in an `impl` block under `#[actor]`, and this is in none\n\
             help: write `#[actor]` above the `impl` block (or `#[actor(more)]`, if the actor has such a block)"
        }
    };
    let error = syn::Error::new(Span::call_site(), text).into_compile_error();
    quote!(#item #error)
}
