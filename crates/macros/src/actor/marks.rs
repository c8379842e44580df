//! The marked methods of a block.

use std::collections::BTreeMap;

use proc_macro2::Ident;
use syn::{Attribute, ImplItem, ImplItemFn, ItemImpl, parse_quote};

use super::hook::{self, Hook, HookKind};
use crate::method::MessageMethod;
use crate::syntax::attrs;
use crate::syntax::errors::{Errors, pretty};
use crate::syntax::generics::ActorType;
use crate::syntax::wire::{Reach, WireName};

/// The marked methods of a block.
#[derive(Default)]
pub(super) struct MarkedMethods {
    pub(super) messages: Vec<MessageMethod>,
    pub(super) hooks: Vec<Hook>,
}

impl MarkedMethods {
    /// Reads the marked methods, and removes the marks. Without an actor, it only removes them.
    pub(super) fn take(block: &mut ItemImpl, actor: Option<&ActorType>, reach: Reach, errors: &mut Errors) -> Self {
        let mut marked = Self::default();
        let mut seen = SeenNames::default();
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
                    marked.messages.extend(errors.keep(method));
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
                        marked.hooks.extend(errors.keep(hook));
                    }
                    allow_forms(function);
                }
            }
        }
        marked
    }
}

/// The names and hooks so far, to find duplicates. Items under `#[cfg]` may be alternatives, which only the compiler
/// can tell, so they are ignored.
#[derive(Default)]
struct SeenNames {
    messages: BTreeMap<String, Ident>,
    /// The methods by their given names on the wire.
    on_wire: BTreeMap<String, Ident>,
    hooks: Vec<HookKind>,
}

impl SeenNames {
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

/// An attribute of `#[actor]` on an item of the block.
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

/// Removes the marks from an item that is no method, and reports them.
fn refuse(attrs: &mut Vec<Attribute>, what: &str, errors: &mut Errors) -> Vec<Mark> {
    for mark in Mark::take(attrs) {
        errors.at(mark.attr(), format!("`{}` marks a method, and this is {what}", pretty(mark.attr())));
    }
    Vec::new()
}

/// Allows lints against forms that a marked method may need: arguments that are owned and only read, and `self` or
/// `async` without need.
fn allow_forms(function: &mut ImplItemFn) {
    let allow = parse_quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unused_async, clippy::unused_self)]
    };
    function.attrs.insert(0, allow);
}
