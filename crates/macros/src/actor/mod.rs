//! `#[actor]`: the `impl` block becomes an actor and its messages.

mod block;
mod hook;
mod marks;
mod options;
mod remote;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Item;
use syn::spanned::Spanned;

use self::block::{actor_type, not_a_block};
use self::hook::Hook;
use self::marks::MarkedMethods;
use self::options::ActorOptions;
use crate::method::emit;
use crate::syntax::errors::Errors;
use crate::syntax::generics::ActorType;
use crate::syntax::wire::Reach;

/// Expands `#[actor(args)] item`. The parts that are right are written out even if others have errors, so that one
/// mistake causes one message.
pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = ActorOptions::parse(args, &mut errors);
    let item = match syn::parse2::<Item>(item) {
        Ok(item) => item,
        Err(error) => {
            errors.add(error);
            return errors.into_tokens();
        }
    };
    let Item::Impl(mut block) = item else {
        errors.add(not_a_block(&item));
        let errors = errors.into_tokens();
        return quote!(#item #errors);
    };
    let actor = errors.keep(actor_type(&block));
    let reach = actor.as_ref().map_or(Reach::Invalid, |actor| remote::reach(&options, actor, &mut errors));
    let marked = MarkedMethods::take(&mut block, actor.as_ref(), reach, &mut errors);
    if options.more.is_some() {
        for hook in &marked.hooks {
            let text = "an actor's hooks are methods of its block without `more`\nhelp: move this method there";
            errors.at(&hook.method, text);
        }
    }
    let generated = actor.map(|actor| {
        let messages = marked.messages.iter().map(|method| emit::message(method, &actor));
        let entries = (reach == Reach::Remote).then(|| remote::entries(&options, &actor, &marked.messages));
        let actor = match &options.more {
            None => impl_actor(&actor, &marked.hooks),
            Some(_) => TokenStream::new(),
        };
        quote!(#actor #(#messages)* #entries)
    });
    let errors = errors.into_tokens();
    quote!(#block #generated #errors)
}

fn impl_actor(actor: &ActorType, hooks: &[Hook]) -> TokenStream {
    let span = Span::mixed_site().located_at(actor.ty.span());
    let ty = &actor.ty;
    let (generics, _, clause) = actor.generics.split_for_impl();
    let is_generic = !actor.generics.params.is_empty();
    let hooks = hooks.iter().map(|hook| hook.forward(is_generic));
    // A second block without `more` causes two errors: a second implementation of the trait, and a second constant
    // whose name says what to do.
    let reminder = Ident::new("__a_second_block_is_marked_with_actor_more", span);
    quote_spanned! {span=>
        #[automatically_derived]
        impl #generics #ty #clause {
            #[doc(hidden)]
            #[allow(dead_code, non_upper_case_globals)]
            const #reminder: () = ();
        }

        #[automatically_derived]
        impl #generics ::playhouse::Actor for #ty #clause {
            #(#hooks)*
        }
    }
}
