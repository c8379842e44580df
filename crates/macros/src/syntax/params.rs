//! Receivers and parameters of marked methods.

use proc_macro2::Ident;
use quote::format_ident;
use syn::{FnArg, GenericArgument, Pat, PatType, PathArguments, PathSegment, Receiver, ReceiverKind, Signature, Type};

use super::errors::{Errors, pretty};
use super::generics::{ActorType, is_actor};

/// A parameter after `self`.
pub(crate) enum Param {
    /// `&mut Context<Self>`
    Context,
    /// `Reply<T>`, with its `T` as written
    Reply(Box<Type>),
    /// any other parameter
    Argument {
        /// The name of the argument, or `arg0` and so on for a `_`.
        name: Ident,
        /// The type of the argument, as written.
        ty: Box<Type>,
    },
}

/// Checks that `sig` takes `&self` or `&mut self`. `what` names the kind of method.
pub(crate) fn check_receiver(sig: &Signature, what: &str, errors: &mut Errors) {
    match sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) if borrows_self(receiver) => {}
        Some(FnArg::Receiver(receiver)) => errors.at(
            receiver,
            format!(
                "`{}` takes the actor away from the runtime\n\
                 help: take `&mut self`; to end the actor, take `ctx: &mut Context<Self>` too and call `ctx.stop()`",
                pretty(receiver)
            ),
        ),
        _ => errors.at(
            &sig.ident,
            format!("a {what} runs on its actor, but `{}` has no `self`\nhelp: add `&mut self` or `&self`", sig.ident),
        ),
    }
}

fn borrows_self(receiver: &Receiver) -> bool {
    match &receiver.kind {
        ReceiverKind::Reference(..) => true,
        ReceiverKind::Typed(_, ty) => match &**ty {
            Type::Reference(reference) => {
                matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("Self"))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns the parameters of `sig` after `self`.
pub(crate) fn read(sig: &Signature, actor: &ActorType, errors: &mut Errors) -> Vec<Param> {
    let mut params = Vec::new();
    let mut context: Option<String> = None;
    for (index, input) in sig.inputs.iter().enumerate() {
        let FnArg::Typed(typed) = input else { continue };
        match context_of(&typed.ty, actor) {
            ContextKind::Context => {
                if let Some(first) = &context {
                    let text =
                        format!("there is one context, and `{first}` has it already\nhelp: remove this parameter");
                    errors.at(typed, text);
                }
                context = Some(pretty(&typed.pat));
                params.push(Param::Context);
            }
            ContextKind::Mistaken(text) => errors.at(&typed.ty, text),
            ContextKind::Other => {
                if let Some(answer) = reply_of(&typed.ty) {
                    if params.iter().any(|param| matches!(param, Param::Reply(_))) {
                        let text = "a message has one answer, so there is one `Reply`\nhelp: remove this parameter";
                        errors.at(typed, text);
                    }
                    params.push(Param::Reply(Box::new(answer.clone())));
                } else if let Some(name) = argument_name(typed, index, errors) {
                    params.push(Param::Argument { name, ty: typed.ty.clone() });
                }
            }
        }
    }
    params
}

fn argument_name(typed: &PatType, index: usize, errors: &mut Errors) -> Option<Ident> {
    for attr in &typed.attrs {
        if attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr") {
            errors.at(attr, "an argument of a message cannot be conditional\nhelp: put `#[cfg]` on the method");
        }
    }
    match &*typed.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(name.ident.clone()),
        Pat::Wild(_) => Some(format_ident!("arg{}", index.saturating_sub(1))),
        pattern => {
            errors.at(
                pattern,
                format!(
                    "an argument of a message is a name, but this is the pattern `{}`\n\
                     help: name it, as in `arg: {}`, and take it apart in the body",
                    pretty(pattern),
                    pretty(&typed.ty)
                ),
            );
            None
        }
    }
}

/// The relation of a parameter's type to the context.
enum ContextKind {
    Context,
    /// A mistaken context, with the text of the error.
    Mistaken(String),
    Other,
}

fn context_of(ty: &Type, actor: &ActorType) -> ContextKind {
    match ty {
        Type::Paren(inner) => context_of(&inner.elem, actor),
        Type::Group(inner) => context_of(&inner.elem, actor),
        Type::Reference(reference) => match context_segment(&reference.elem) {
            None => ContextKind::Other,
            Some(segment) => match context_owner(segment) {
                ContextOwner::Missing => {
                    ContextKind::Mistaken("this context names no actor\nhelp: write `&mut Context<Self>`".into())
                }
                ContextOwner::Actor(named) if is_actor(named, actor) => ContextKind::Context,
                ContextOwner::Actor(named) => ContextKind::Mistaken(format!(
                    "this is the context of `{}`, but the actor is `{}`\nhelp: write `&mut Context<Self>`",
                    pretty(named),
                    pretty(&actor.ty)
                )),
                ContextOwner::Other => ContextKind::Other,
            },
        },
        _ => match context_segment(ty).map(context_owner) {
            Some(ContextOwner::Actor(named)) if is_actor(named, actor) => ContextKind::Mistaken(
                "the context is lent to the method, not given away\nhelp: write `&mut Context<Self>`".into(),
            ),
            _ => ContextKind::Other,
        },
    }
}

/// Returns the type of the answer, if the type is a `Reply`.
fn reply_of(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Paren(inner) => reply_of(&inner.elem),
        Type::Group(inner) => reply_of(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last().filter(|last| last.ident == "Reply")?;
            let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
            match list.args.first() {
                Some(GenericArgument::Type(answer)) if list.args.len() == 1 => Some(answer),
                _ => None,
            }
        }
        _ => None,
    }
}

fn context_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Paren(inner) => context_segment(&inner.elem),
        Type::Group(inner) => context_segment(&inner.elem),
        Type::Path(path) => path.path.segments.last().filter(|last| last.ident == "Context"),
        _ => None,
    }
}

enum ContextOwner<'a> {
    Missing,
    Actor(&'a Type),
    /// Another `Context`, such as that of `std::task`.
    Other,
}

fn context_owner(segment: &PathSegment) -> ContextOwner<'_> {
    match &segment.arguments {
        PathArguments::None => ContextOwner::Missing,
        PathArguments::AngleBracketed(list) => match list.args.first() {
            Some(GenericArgument::Type(ty)) if list.args.len() == 1 => ContextOwner::Actor(ty),
            _ => ContextOwner::Other,
        },
        PathArguments::Parenthesized(_) => ContextOwner::Other,
    }
}
