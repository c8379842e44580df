//! The generated code of a message method.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Index, Token, Type};

use super::options::{Otherwise, When};
use super::{MessageMethod, Mode};
use crate::syntax::generics::ActorType;
use crate::syntax::params::Param;

/// Returns the message struct, its `impl Message` and the handler.
pub(crate) fn message(method: &MessageMethod, actor: &ActorType) -> TokenStream {
    let message = Message::new(method, actor);
    if method.named && !message.phantoms.is_empty() {
        let text = format!(
            "only the reply of `{}` mentions a generic type, so a function makes its message, `{}(..)`, and fields are not named\n\
             help: remove `named`",
            method.method, method.name
        );
        return syn::Error::new_spanned(&method.name, text).into_compile_error();
    }
    [message.definition(), message.reminder(), message.impl_message(), message.impl_handler()].into_iter().collect()
}

/// Returns the entry of the binary's list for the message and the actor.
pub(crate) fn entry(method: &MessageMethod, actor: &ActorType) -> TokenStream {
    let (cfgs, name, actor) = (&method.inherited.cfgs, &method.name, &actor.ty);
    let span = Span::mixed_site().located_at(method.method.span());
    let submit = quote_spanned! {span=>
        ::playhouse::__macros::submit! { ::playhouse::__macros::Handles::of::<#actor, #name, _>() }
    };
    if !method.inherited.deprecated {
        return quote!(#(#cfgs)* #submit);
    }
    quote! {
        #(#cfgs)*
        #[allow(deprecated)]
        const _: () = { #submit };
    }
}

struct Message<'a> {
    method: &'a MessageMethod,
    actor: &'a ActorType,
    /// The generics of the message.
    generics: Generics,
    /// Type parameters that only the reply mentions. A `PhantomData` holds them.
    phantoms: Vec<Ident>,
    /// The place of the method with the hygiene of a macro, because lints should not take the code for the user's.
    span: Span,
}

impl<'a> Message<'a> {
    fn new(method: &'a MessageMethod, actor: &'a ActorType) -> Self {
        let in_arguments: BTreeSet<String> = method.arguments().flat_map(|(_, ty)| actor.mentioned(ty)).collect();
        let mut used = actor.mentioned(&method.reply);
        used.extend(in_arguments.iter().cloned());
        let generics = actor.subset(&used, &method.predicates);
        let phantoms = generics
            .type_params()
            .map(|param| param.ident.clone())
            .filter(|ident| !in_arguments.contains(&ident.to_string()))
            .collect();
        let span = Span::mixed_site().located_at(method.method.span());
        Self { method, actor, generics, phantoms, span }
    }

    fn definition(&self) -> TokenStream {
        let MessageMethod { name, vis, derives, inherited, .. } = self.method;
        let (cfgs, attrs) = (&inherited.cfgs, &inherited.on_struct);
        let derives = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
        let serde = self.method.wire.as_ref().map(|_| {
            quote_spanned! {self.span=>
                #[derive(::playhouse::__macros::serde::Serialize, ::playhouse::__macros::serde::Deserialize)]
                #[serde(crate = "::playhouse::__macros::serde")]
            }
        });
        let (generics, _, clause) = self.generics.split_for_impl();
        let head = quote_spanned! {self.span=>
            #(#cfgs)*
            #(#attrs)*
            #derives
            #serde
            #vis struct
        };
        if !self.phantoms.is_empty() {
            return self.phantom_definition(&head);
        }
        if self.method.arguments().next().is_none() {
            return quote_spanned!(self.span=> #head #name #generics #clause;);
        }
        let (fields, types): (Vec<&Ident>, Vec<&Type>) = self.method.arguments().unzip();
        let docs = self.field_docs();
        if self.method.named {
            return quote_spanned!(self.span=> #head #name #generics #clause { #(#docs #vis #fields: #types),* });
        }
        quote_spanned!(self.span=> #head #name #generics (#(#docs #vis #types),*) #clause;)
    }

    /// Returns the documentation of the fields.
    fn field_docs(&self) -> Vec<TokenStream> {
        let (actor, method) = (&self.actor.name, &self.method.method);
        let doc = |(name, ty): (&Ident, &Type)| {
            let text = format!(" The argument `{name}` of `{actor}::{method}`.");
            // The place is that of the type, where the compiler shows errors of the field.
            quote_spanned!(Span::mixed_site().located_at(ty.span())=> #[doc = #text])
        };
        self.method.arguments().map(doc).collect()
    }

    /// Returns whether the fields have names.
    fn is_braced(&self) -> bool {
        self.method.named || !self.phantoms.is_empty()
    }

    /// Returns an item whose name tells what to do if two messages of a module have one name.
    fn reminder(&self) -> TokenStream {
        let MessageMethod { name, inherited, .. } = self.method;
        let cfgs = &inherited.cfgs;
        let reminder = format_ident!("__two_messages_are_called_{name}_write_message_name_at_one", span = self.span);
        quote_spanned! {self.span=>
            #(#cfgs)*
            #[doc(hidden)]
            #[allow(dead_code, non_upper_case_globals)]
            const #reminder: () = ();
        }
    }

    /// Returns a struct with named fields, and the function that makes it.
    fn phantom_definition(&self, head: &TokenStream) -> TokenStream {
        let MessageMethod { name, vis, inherited, method, .. } = self.method;
        let cfgs = &inherited.cfgs;
        let (generics, arguments, clause) = self.generics.split_for_impl();
        let (fields, types): (Vec<&Ident>, Vec<&Type>) = self.method.arguments().unzip();
        let docs = self.field_docs();
        let phantoms = &self.phantoms;
        let phantom = quote_spanned!(self.span=> ::core::marker::PhantomData);
        let marker = quote_spanned!(self.span=> __reply);
        let doc = format!(" Makes the message for `{}::{method}`.", self.actor.name);
        let deprecated = self.allow_deprecated();
        quote_spanned! {self.span=>
            #head #name #generics #clause {
                #(#docs #vis #fields: #types,)*
                #marker: #phantom<fn() -> (#(#phantoms,)*)>,
            }

            #(#cfgs)*
            #deprecated
            #[doc = #doc]
            #[allow(non_snake_case, clippy::must_use_candidate)]
            #[inline]
            #vis fn #name #generics (#(#fields: #types),*) -> #name #arguments #clause {
                #name { #(#fields,)* #marker: #phantom }
            }
        }
    }

    fn impl_message(&self) -> TokenStream {
        let MessageMethod { name, reply, inherited, .. } = self.method;
        let cfgs = &inherited.cfgs;
        let deprecated = self.allow_deprecated();
        let (generics, arguments, clause) = self.generics.split_for_impl();
        // The derive of serde checks the arguments with its own texts. These checks say what to write.
        let wire_types = self.method.wire.as_ref().map(|_| {
            let checks = self.method.arguments().map(|(_, ty)| {
                quote_spanned!(Span::mixed_site().located_at(ty.span())=> ::playhouse::__macros::transferable::<#ty>();)
            });
            let allows = inherited
                .on_struct
                .iter()
                .filter(|attr| !attr.path().is_ident("doc") && !attr.path().is_ident("deprecated"));
            quote_spanned! {self.span=>
                #(#cfgs)*
                #(#allows)*
                #deprecated
                const _: () = {
                    #[allow(dead_code)]
                    fn __playhouse_wire_types #generics () #clause { #(#checks)* }
                };
            }
        });
        let wire = self.method.wire.as_ref().map(|name| name.constant(self.method.reply_span()));
        quote_spanned! {self.span=>
            #wire_types

            #(#cfgs)*
            #deprecated
            #[automatically_derived]
            impl #generics ::playhouse::Message for #name #arguments #clause {
                type Reply = #reply;
                #wire
            }
        }
    }

    fn impl_handler(&self) -> TokenStream {
        let MessageMethod { name, reply, inherited, method, mode, .. } = self.method;
        let cfgs = &inherited.cfgs;
        let deprecated = self.allow_deprecated();
        let all = self.actor.with(&self.method.predicates);
        let (generics, _, clause) = all.split_for_impl();
        let (_, arguments, _) = self.generics.split_for_impl();
        let actor = &self.actor.ty;

        let span = self.span;
        let (handler, asyncness, awaited) = match mode {
            Mode::Sync => (quote_spanned!(span=> Handler), None, None),
            Mode::Async => {
                (quote_spanned!(span=> AsyncHandler), Some(quote!(async)), Some(quote_spanned!(span=> .await)))
            }
            Mode::Deferred | Mode::Reentrant => (quote_spanned!(span=> DeferredHandler), None, None),
        };
        let is_deferred = matches!(mode, Mode::Deferred | Mode::Reentrant);
        let replies = is_deferred.then(|| quote_spanned!(span=> __reply: ::playhouse::Reply<#reply>,));
        let has_context =
            *mode == Mode::Reentrant || self.method.params.iter().any(|param| matches!(param, Param::Context));
        let has_arguments = self.method.arguments().next().is_some();
        let msg = Ident::new(if has_arguments { "msg" } else { "_msg" }, self.span);
        let ctx = Ident::new(if has_context { "ctx" } else { "_ctx" }, self.span);
        let mut index = 0;
        let passed = self.method.params.iter().map(|param| match param {
            Param::Context => quote_spanned!(self.span=> #ctx),
            Param::Reply(_) => quote_spanned!(self.span=> __reply),
            Param::Argument { name, .. } if self.is_braced() => {
                quote_spanned!(self.span=> #msg.#name)
            }
            Param::Argument { .. } => {
                let field = Index { index, span: self.span };
                index += 1;
                quote_spanned!(self.span=> #msg.#field)
            }
        });
        let call = quote_spanned!(self.span=> Self::#method(self, #(#passed),*) #awaited);
        let (output, call) = match reply {
            _ if *mode == Mode::Deferred => (None, quote!(#call;)),
            _ if *mode == Mode::Reentrant => {
                let begin = quote_spanned! {self.method.reply_span()=>
                    let __answer = #call;
                    ::playhouse::Reply::send_when_ready(__reply, #ctx, __answer);
                };
                (None, begin)
            }
            Type::Tuple(tuple) if tuple.elems.is_empty() => (None, quote!(#call;)),
            reply => (Some(quote_spanned!(self.span=> -> #reply)), call),
        };
        let guard = self.guard();
        quote_spanned! {self.span=>
            #(#cfgs)*
            #deprecated
            #[automatically_derived]
            impl #generics ::playhouse::#handler<#name #arguments> for #actor #clause {
                #[inline]
                #asyncness fn handle(&mut self, #msg: #name #arguments, #replies #ctx: &mut ::playhouse::Context<Self>) #output {
                    #call
                }
                #guard
            }
        }
    }

    /// Returns the `guard` of the handler, if the message has one. The expression sees `self`, and the arguments as
    /// references.
    fn guard(&self) -> Option<TokenStream> {
        let When { guard, otherwise } = self.method.when.as_ref()?;
        let name = &self.method.name;
        let (_, arguments, _) = self.generics.split_for_impl();
        let this = Token![self](guard.span());
        let msg = Ident::new("msg", self.span);
        let names: Vec<&Ident> = self.method.arguments().map(|(name, _)| name).collect();
        let pattern = match names.as_slice() {
            [] => quote_spanned!(self.span=> _),
            _ if self.is_braced() => quote_spanned!(self.span=> #name { #(#names,)* .. }),
            names => quote_spanned!(self.span=> #name(#(#names),*)),
        };
        let otherwise = match otherwise {
            Otherwise::Defer => quote_spanned!(self.span=> Defer),
            Otherwise::Refuse => quote_spanned!(self.span=> Refuse),
            Otherwise::Drop => quote_spanned!(self.span=> Drop),
        };
        Some(quote_spanned! {self.span=>
            #[inline]
            #[allow(unused_variables)]
            fn guard(&#this, #msg: &#name #arguments) -> ::playhouse::Guard {
                let #pattern = #msg;
                let holds: bool = #guard;
                if holds { ::playhouse::Guard::Holds } else { ::playhouse::Guard::#otherwise }
            }
        })
    }

    fn allow_deprecated(&self) -> Option<TokenStream> {
        self.method.inherited.deprecated.then(|| quote!(#[allow(deprecated)]))
    }
}
