//! Checks of ownership: messages and replies move between threads, so their types own their data.
//!
//! `'static` borrows are allowed. Borrows in the signature of a sent function (`fn(&str)`, `Box<dyn Fn(&str)>`) are
//! allowed too, because they belong to its calls.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Lifetime, ParenthesizedGenericArguments, Type, TypeFnPtr, TypeImplTrait, TypeReference};

use super::errors::{Errors, pretty};
use super::generics::{ActorType, is_actor};

/// The position of a type that must own its data.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    /// The argument with this name, in a message method of this actor.
    Argument(&'a str, &'a ActorType),
    /// The reply of the message method with this name.
    Reply(&'a str),
    /// The reply in `#[message(reply = ..)]`.
    DerivedReply,
}

/// Reports each borrow and each `impl Trait` in `ty`. With `remote` it reports `'static` borrows too, because data
/// from the wire cannot be borrowed.
pub(crate) fn check(ty: &Type, owner: Owner<'_>, remote: bool, errors: &mut Errors) {
    Borrows { owner, remote, errors }.visit_type(ty);
}

struct Borrows<'a> {
    owner: Owner<'a>,
    remote: bool,
    errors: &'a mut Errors,
}

impl Borrows<'_> {
    /// Reports "a message is moved .., so `x` cannot <verb> <what>".
    fn report(&mut self, tokens: impl ToTokens, what: &str, help: &str) {
        let text = match self.owner {
            Owner::Argument(name, _) => {
                format!("a message is moved to its actor, so the argument `{name}` cannot be {what}\nhelp: take {help}")
            }
            Owner::Reply(method) => {
                format!("a reply is moved to its asker, so `{method}` cannot return {what}\nhelp: return {help}")
            }
            Owner::DerivedReply => {
                format!("a reply is moved to its asker, so it cannot be {what}\nhelp: reply with {help}")
            }
        };
        self.errors.at(tokens, text);
    }
}

impl Visit<'_> for Borrows<'_> {
    fn visit_type_reference(&mut self, reference: &TypeReference) {
        if is_static(reference.lifetime.as_ref()) {
            if self.remote {
                let text = format!(
                    "data from the wire is owned, so it cannot be the borrow `{}`\nhelp: write `{}`",
                    pretty(reference),
                    owned(&reference.elem)
                );
                self.errors.at(reference, text);
                return;
            }
            return visit::visit_type(self, &reference.elem);
        }
        let what = format!("the borrow `{}`", pretty(reference));
        let help = match self.owner {
            Owner::Argument(_, actor) if is_actor(&reference.elem, actor) => {
                "an `ActorRef<Self>`, or a copy of the needed parts".into()
            }
            _ => format!("`{}`", owned(&reference.elem)),
        };
        self.report(reference, &what, &help);
    }

    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if !is_static(Some(lifetime)) {
            let what = format!("a type that borrows for `{lifetime}`");
            self.report(lifetime, &what, "a type that owns its data, or write `'static`");
        }
    }

    fn visit_type_impl_trait(&mut self, anonymous: &TypeImplTrait) {
        let bounds = pretty(&anonymous.bounds);
        let text = match self.owner {
            Owner::Argument(name, _) => format!(
                "a message is one concrete type, so the argument `{name}` cannot be `impl {bounds}`\n\
                 help: name the type, or make it a generic of the actor"
            ),
            Owner::Reply(method) if bounds.contains("Future") => format!(
                "the reply of a message has a name, so `{method}` cannot return `impl {bounds}`\n\
                 help: write an `async fn`, which holds the actor while it awaits, or mark the method with `#[message(reentrant)]`"
            ),
            Owner::Reply(method) => format!(
                "the reply of a message has a name, so `{method}` cannot return `impl {bounds}`\n\
                 help: return a named type; for an iterator, collect it into a `Vec`"
            ),
            Owner::DerivedReply => format!(
                "the reply of a message has a name, so it cannot be `impl {bounds}`\n\
                 help: name the type"
            ),
        };
        self.errors.at(anonymous, text);
    }

    fn visit_type_fn_ptr(&mut self, _: &TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &ParenthesizedGenericArguments) {}

    fn visit_trait_bound(&mut self, bound: &syn::TraitBound) {
        if bound.lifetimes.is_none() {
            visit::visit_trait_bound(self, bound);
        }
    }
}

fn is_static(lifetime: Option<&Lifetime>) -> bool {
    lifetime.is_some_and(|lifetime| lifetime.ident == "static")
}

/// Returns the owned type to write instead of a borrow of `ty`.
fn owned(ty: &Type) -> String {
    match ty {
        Type::Paren(inner) => owned(&inner.elem),
        Type::Group(inner) => owned(&inner.elem),
        Type::Reference(inner) => owned(&inner.elem),
        Type::Slice(slice) => format!("Vec<{}>", pretty(&slice.elem)),
        Type::TraitObject(object) => format!("Box<{}>", pretty(object)),
        Type::Path(path) => match path.path.segments.last().map(|last| last.ident.to_string()).as_deref() {
            Some("str") => "String".into(),
            Some("Path") => "PathBuf".into(),
            Some("OsStr") => "OsString".into(),
            Some("CStr") => "CString".into(),
            _ => pretty(ty),
        },
        _ => pretty(ty),
    }
}
