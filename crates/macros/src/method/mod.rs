//! A `#[message]` method: the check and the parts of its signature.

pub(crate) mod emit;
mod name;
mod options;
mod outside;
mod reentrant;

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{
    Attribute, ImplItemFn, Path, ReturnType, Safety, Signature, Token, Type, Visibility, WherePredicate, parse_quote,
};

use self::options::{MessageOptions, When};
pub(crate) use self::outside::message_outside;
use crate::syntax::attrs::Inherited;
use crate::syntax::errors::Errors;
use crate::syntax::generics::ActorType;
use crate::syntax::owned::{self, Owner};
use crate::syntax::params::{self, Param};
use crate::syntax::wire::{Reach, WireName};

/// The parts of a method that its message and its handler need.
pub(crate) struct MessageMethod {
    /// The name of the method.
    pub(crate) method: Ident,
    /// The name of the message.
    pub(crate) name: Ident,
    /// The visibility of the method and the message.
    pub(crate) vis: Visibility,
    /// The kind of the handler.
    pub(crate) mode: Mode,
    /// The parameters after `self`. No type mentions `Self`.
    pub(crate) params: Vec<Param>,
    /// The type of the answer. It does not mention `Self`.
    pub(crate) reply: Type,
    /// Whether the fields of the message have the names of the arguments.
    pub(crate) named: bool,
    /// The traits that the message derives.
    pub(crate) derives: Vec<Path>,
    /// The name of the message on the wire, if it is remote.
    pub(crate) wire: Option<WireName>,
    /// The guard of the message, if any.
    pub(crate) when: Option<When>,
    /// The attributes for the generated items.
    pub(crate) inherited: Inherited,
    /// The `where` clause of the method, without `Self`.
    pub(crate) predicates: Vec<WherePredicate>,
}

/// The trait that the handler implements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `Handler`
    Sync,
    /// `AsyncHandler`
    Async,
    /// `DeferredHandler`, for a method with a `Reply`
    Deferred,
    /// `DeferredHandler`, for a method that returns the future of the answer
    Reentrant,
}

impl MessageMethod {
    /// Reads `function`, marked with `mark`. Its other attributes are still in place.
    pub(crate) fn read(function: &ImplItemFn, mark: &Attribute, actor: &ActorType, reach: Reach) -> syn::Result<Self> {
        let mut errors = Errors::default();
        let sig = &function.sig;

        let mut options = errors.keep(MessageOptions::parse(mark)).unwrap_or_default();
        let wire = options.wire(reach, &mut errors);
        let when = options.when(&mut errors);
        check_form(function, &mut errors);
        let mut deferred = None;
        let params = params::read(sig, actor, &mut errors)
            .into_iter()
            .filter_map(|param| match param {
                Param::Context => Some(Param::Context),
                Param::Reply(answer) => {
                    deferred = Some(answer.clone());
                    Some(Param::Reply(answer))
                }
                Param::Argument { name, ty } => {
                    owned::check(&ty, Owner::Argument(&name.to_string(), actor), wire.is_some(), &mut errors);
                    let ty = Box::new(errors.keep(actor.without_self(&*ty))?);
                    Some(Param::Argument { name, ty })
                }
            })
            .collect::<Vec<_>>();
        let mode = match (&deferred, &sig.asyncness) {
            _ if options.reentrant.is_some() => Mode::Reentrant,
            (Some(_), asyncness) => {
                check_deferred(sig, asyncness.as_ref(), &mut errors);
                Mode::Deferred
            }
            (None, Some(_)) => Mode::Async,
            (None, None) => Mode::Sync,
        };
        let answer = match (&deferred, &sig.output) {
            _ if mode == Mode::Reentrant => errors.keep(reentrant::answer(sig, deferred.is_some())),
            (Some(answer), _) => Some(&**answer),
            (None, ReturnType::Default) => None,
            (None, ReturnType::Type(_, ty)) => match &**ty {
                Type::Never(_) => None, // it diverges: there is never a reply
                ty => Some(ty),
            },
        };
        let reply = answer.map_or_else(
            || parse_quote!(()),
            |ty| {
                owned::check(ty, Owner::Reply(&sig.ident.to_string()), wire.is_some(), &mut errors);
                errors.keep(actor.without_self(ty)).unwrap_or_else(|| ty.clone())
            },
        );
        let predicates = sig
            .generics
            .where_clause
            .iter()
            .flat_map(|clause| &clause.predicates)
            .filter_map(|predicate| errors.keep(actor.without_self(predicate)))
            .collect();
        let name = match options.name {
            Some(name) => Some(name),
            None => errors.keep(name::of_method(&sig.ident)),
        };
        if let Some(name) = &name {
            let types = sig.inputs.iter().skip(1).map(|input| input.to_token_stream());
            let types = types.chain([sig.output.to_token_stream()]).collect();
            let taken = if *name == actor.name {
                "as the actor itself is"
            } else if name::is_in(name, types) {
                "as a type in its own signature is"
            } else {
                ""
            };
            if !taken.is_empty() {
                let text = format!(
                    "the message of `{}` would be called `{name}`, {taken}\n\
                     help: choose another name with `#[message(name = \"..\")]`",
                    sig.ident
                );
                errors.at(name, text);
            }
        }
        let has_arguments = params.iter().any(|param| matches!(param, Param::Argument { .. }));
        if let (Some(named), false) = (&options.named, has_arguments) {
            let text = format!(
                "`named` names the fields of a message, and that of `{}` has none\nhelp: remove `named`",
                sig.ident
            );
            errors.at(named, text);
        }
        let fallback = sig.ident.clone(); // never seen: without a name there is an error
        errors.or(Self {
            method: sig.ident.clone(),
            name: name.unwrap_or(fallback),
            vis: function.vis.clone(),
            mode,
            params,
            reply,
            named: options.named.is_some(),
            derives: options.derives,
            wire,
            when,
            inherited: Inherited::new(&function.attrs, &actor.name, &sig.ident.to_string()),
            predicates,
        })
    }

    /// Returns the place of the reply's type, or of the method's name without such a type.
    pub(crate) fn reply_span(&self) -> Span {
        let unit = matches!(&self.reply, Type::Tuple(tuple) if tuple.elems.is_empty());
        Span::mixed_site().located_at(if unit { self.method.span() } else { self.reply.span() })
    }

    /// Returns the arguments: all parameters but the context and the `Reply`.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (&Ident, &Type)> {
        self.params.iter().filter_map(|param| match param {
            Param::Context | Param::Reply(_) => None,
            Param::Argument { name, ty } => Some((name, &**ty)),
        })
    }
}

/// Checks the form of a method with a `Reply`.
fn check_deferred(sig: &Signature, asyncness: Option<&Token![async]>, errors: &mut Errors) {
    if let Some(token) = asyncness {
        let text = "a method that takes a `Reply` cannot be `async`\n\
                    help: return the answer from an `async` method without a `Reply`, or answer in `ctx.ask(..).then(..)`";
        errors.at(token, text);
    }
    if let ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty())
        && !matches!(&**ty, Type::Never(_))
    {
        let text = "a method that takes a `Reply` returns nothing, because it answers with `reply.send(..)`\n\
                    help: remove the return type or the `Reply`; import a type of your own called `Reply` under another name";
        errors.at(ty, text);
    }
}

/// Checks the form of a method, except the types of parameters and reply.
fn check_form(function: &ImplItemFn, errors: &mut Errors) {
    let sig = &function.sig;
    params::check_receiver(sig, "message method", errors);
    if !sig.generics.params.is_empty() {
        errors.at(
            &sig.generics,
            format!(
                "a message is one concrete type, so the message method `{}` cannot be generic\n\
                 help: use concrete types, or make the actor generic",
                sig.ident
            ),
        );
    }
    if let Safety::Unsafe(token) = &sig.safety {
        let text = "a message method cannot be `unsafe`, because senders of the message make no promise\n\
                    help: check the conditions inside of the method";
        errors.at(token, text);
    }
    if let Some(token) = &sig.variadic {
        errors.at(token, "a message has a fixed number of arguments");
    }
    if let Some(token) = &function.modifiers.defaultness {
        errors.at(token, "a message method cannot be `default`");
    }
}
