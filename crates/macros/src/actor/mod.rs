//! The `impl` block under `#[actor]`: what it may be, and who gets which method.

use std::collections::BTreeMap;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, ImplItemFn, Item, ItemImpl, Lifetime, Type, parse_quote};

use crate::attrs;
use crate::emit;
use crate::errors::{Errors, pretty};
use crate::generics::ActorType;
use crate::hook::{self, Hook, HookKind};
use crate::method::MessageMethod;
use crate::options::ActorOptions;
use crate::remote::{self, Reach, WireName};

/// Expands `#[actor(args)] item`. What can be understood is written out even where there are
/// errors, so that one mistake does not cause a dozen messages.
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
    let reach = actor.as_ref().map_or(Reach::Refused, |actor| remote::reach(&options, actor, &mut errors));
    let parts = Parts::take(&mut block, actor.as_ref(), reach, &mut errors);
    if options.more.is_some() {
        for hook in &parts.hooks {
            let text = "an actor's hooks are methods of its block without `more`\nhelp: move this method there";
            errors.at(&hook.method, text);
        }
    }
    let generated = actor.map(|actor| {
        let messages = parts.messages.iter().map(|method| emit::message(method, &actor));
        let entries = (reach == Reach::Remote).then(|| remote::entries(&options, &actor, &parts.messages));
        let actor = match &options.more {
            None => impl_actor(&actor, &parts.hooks),
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
    let hooks = hooks.iter().map(Hook::forward);
    // A second block without `more` is two errors: that the trait is implemented twice, and that this is there twice, which says what to do.
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

/// The marked methods of a block.
#[derive(Default)]
struct Parts {
    messages: Vec<MessageMethod>,
    hooks: Vec<Hook>,
}

impl Parts {
    /// Reads the marked methods, and removes the marks. Without an actor, only the latter.
    fn take(block: &mut ItemImpl, actor: Option<&ActorType>, reach: Reach, errors: &mut Errors) -> Self {
        let mut parts = Self::default();
        let mut seen = Seen::default();
        for item in &mut block.items {
            let marks = match item {
                ImplItem::Fn(function) => Mark::take(&mut function.attrs),
                ImplItem::Const(item) => refuse(&mut item.attrs, "a constant", errors),
                ImplItem::Type(item) => refuse(&mut item.attrs, "a type", errors),
                ImplItem::Macro(item) => refuse(&mut item.attrs, "a macro call", errors),
                _ => continue,
            };
            let (ImplItem::Fn(function), Some(actor)) = (item, actor) else {
                continue;
            };
            match marks.as_slice() {
                [] => {
                    let misnamed = hook::take_misnamed(&mut function.attrs);
                    if let Some(error) = misnamed.or_else(|| hook::check_unmarked(function, actor)) {
                        errors.add(error);
                    }
                }
                [Mark::Message(mark)] => {
                    let method = MessageMethod::read(function, mark, actor, reach)
                        .and_then(|method| seen.message(method, function));
                    parts.messages.extend(errors.keep(method));
                    allow_forms(function);
                }
                [first, second, ..] if marks.iter().any(|mark| mark.hook().is_none()) => {
                    let text = format!("`{}` is marked already, with `{}`", function.sig.ident, pretty(first.attr()));
                    errors.at(second.attr(), text);
                }
                hooks => {
                    for (kind, mark) in hooks.iter().filter_map(Mark::hook) {
                        let hook =
                            Hook::read(kind, function, mark, actor).and_then(|hook| seen.hook(hook, mark, function));
                        parts.hooks.extend(errors.keep(hook));
                    }
                    allow_forms(function);
                }
            }
        }
        parts
    }
}

/// Remembers what must not come twice. Items under `#[cfg]` may be alternatives to each other, which
/// only the compiler can tell: they are not looked at.
#[derive(Default)]
struct Seen {
    messages: BTreeMap<String, Ident>,
    /// The methods of the names that are given for the wire.
    on_wire: BTreeMap<String, Ident>,
    hooks: Vec<HookKind>,
}

impl Seen {
    fn message(&mut self, method: MessageMethod, function: &ImplItemFn) -> syn::Result<MessageMethod> {
        if attrs::conditional(&function.attrs) {
            return Ok(method);
        }
        let name = method.name.to_string();
        if let Some(first) = self.messages.get(&name) {
            let text = format!(
                "the messages of `{}` and `{first}` would both be called `{name}`\n\
                 help: choose another name for one of them with `#[message(name = \"..\")]`",
                method.method
            );
            return Err(syn::Error::new_spanned(method.name, text));
        }
        if let Some(WireName::Given(wire)) = &method.wire {
            if let Some(first) = self.on_wire.get(&wire.value()) {
                let text = format!(
                    "the messages of `{}` and `{first}` would both be called {wire:?} on the wire\n\
                     help: choose another name for one of them",
                    method.method,
                    wire = wire.value()
                );
                return Err(syn::Error::new_spanned(wire, text));
            }
            self.on_wire.insert(wire.value(), method.method.clone());
        }
        self.messages.insert(name, method.method.clone());
        Ok(method)
    }

    fn hook(&mut self, hook: Hook, mark: &Attribute, function: &ImplItemFn) -> syn::Result<Hook> {
        if attrs::conditional(&function.attrs) {
            return Ok(hook);
        }
        if self.hooks.contains(&hook.kind) {
            let name = hook.kind.name();
            let text = format!("an actor has one `#[{name}]` method, and there is one above");
            return Err(syn::Error::new_spanned(mark, text));
        }
        self.hooks.push(hook.kind);
        Ok(hook)
    }
}

/// An attribute of ours on an item of the block.
enum Mark {
    Message(Attribute),
    Hook(HookKind, Attribute),
}

impl Mark {
    fn of(attr: &Attribute) -> Option<Self> {
        let name = attr.path().get_ident()?.to_string();
        if name == "message" {
            return Some(Self::Message(attr.clone()));
        }
        HookKind::from_name(&name).map(|kind| Self::Hook(kind, attr.clone()))
    }

    /// Removes the marks from `attrs`.
    fn take(attrs: &mut Vec<Attribute>) -> Vec<Self> {
        let marks = attrs.iter().filter_map(Self::of).collect();
        attrs.retain(|attr| Self::of(attr).is_none());
        marks
    }

    fn hook(&self) -> Option<(HookKind, &Attribute)> {
        match self {
            Self::Hook(kind, attr) => Some((*kind, attr)),
            Self::Message(_) => None,
        }
    }

    fn attr(&self) -> &Attribute {
        match self {
            Self::Message(attr) | Self::Hook(_, attr) => attr,
        }
    }
}

/// Removes marks from something that is no method, and says so.
fn refuse(attrs: &mut Vec<Attribute>, what: &str, errors: &mut Errors) -> Vec<Mark> {
    for mark in Mark::take(attrs) {
        errors.at(mark.attr(), format!("`{}` marks a method, and this is {what}", pretty(mark.attr())));
    }
    Vec::new()
}

/// Lints against forms that a marked method may have to have: it owns arguments that it only looks
/// at, and takes `self` and may be `async` although it needs neither.
fn allow_forms(function: &mut ImplItemFn) {
    let allow = parse_quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unused_async, clippy::unused_self)]
    };
    function.attrs.insert(0, allow);
}

/// The type of the block, if it can be an actor.
fn actor_type(block: &ItemImpl) -> syn::Result<ActorType> {
    let ty = &*block.self_ty;
    if let Some((path, _)) = &block.trait_ {
        let text = if path.segments.last().is_some_and(|last| last.ident == "Actor") {
            format!(
                "`#[actor]` writes `impl Actor` itself\n\
                 help: put it on `impl {} {{ .. }}`, and mark methods there with `#[started]` and the like",
                pretty(ty)
            )
        } else {
            format!(
                "`#[actor]` goes on the block of the type's own methods, not on an `impl` of the trait `{}`\n\
                 help: put it on `impl {} {{ .. }}`",
                pretty(path),
                pretty(ty)
            )
        };
        return Err(syn::Error::new_spanned(path, text));
    }
    let mut errors = Errors::default();
    let name = match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    };
    if name.is_none() {
        let text = format!("an actor is a struct or an enum of yours, and `{}` is neither", pretty(ty));
        errors.at(ty, text);
    }
    let mut borrowed = Lifetimes::default();
    borrowed.visit_generics(&block.generics);
    borrowed.visit_type(ty);
    if let Some(lifetime) = borrowed.first {
        let text = format!(
            "an actor lives on other threads than the one that made it, so it cannot borrow for `{lifetime}`\n\
             help: own the data, with `String`, `Vec` or `Arc`"
        );
        errors.at(lifetime, text);
    }
    errors.or(ActorType { ty: ty.clone(), name: name.unwrap_or_default(), generics: block.generics.clone() })
}

/// The first lifetime that is not `'static`.
#[derive(Default)]
struct Lifetimes {
    first: Option<Lifetime>,
}

impl Visit<'_> for Lifetimes {
    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if lifetime.ident != "static" {
            self.first.get_or_insert_with(|| lifetime.clone());
        }
    }

    fn visit_trait_bound(&mut self, bound: &syn::TraitBound) {
        if bound.lifetimes.is_none() {
            visit::visit_trait_bound(self, bound);
        }
    }
}

fn not_a_block(item: &Item) -> syn::Error {
    let (tokens, what, name) = match item {
        Item::Struct(item) => (item.struct_token.to_token_stream(), "a struct", Some(&item.ident)),
        Item::Enum(item) => (item.enum_token.to_token_stream(), "an enum", Some(&item.ident)),
        Item::Trait(item) => (item.trait_token.to_token_stream(), "a trait", None),
        Item::Fn(item) => (item.sig.fn_token.to_token_stream(), "a function", None),
        Item::Mod(item) => (item.mod_token.to_token_stream(), "a module", None),
        other => (other.to_token_stream(), "this", None),
    };
    let place = name.map_or("impl Counter { .. }".into(), |name| format!("impl {name} {{ .. }}"));
    let text = format!(
        "`#[actor]` goes on the `impl` block with the message methods, not on {what}\n\
         help: write it above `{place}`"
    );
    syn::Error::new_spanned(tokens, text)
}
