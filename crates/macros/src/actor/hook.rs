//! The hooks `#[started]`, `#[stopped]`, `#[terminated]`, `#[receive_timeout]`, `#[migrating]`, `#[migrated]` and
//! `#[migration_failed]`: `Actor`'s methods forward to them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Attribute, ImplItemFn, Meta, ReturnType, Safety, Type};

use crate::syntax::attrs::Inherited;
use crate::syntax::errors::{Errors, pretty};
use crate::syntax::generics::ActorType;
use crate::syntax::params::{self, Param};

/// A kind of hook, by the method of `Actor`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookKind {
    /// Called before the first message.
    Started,
    /// Called after the last message.
    Stopped,
    /// Called when a watched actor has ended.
    Terminated,
    /// Called when the actor has been idle for a given time.
    ReceiveTimeout,
    /// Called before a migration.
    Migrating,
    /// Called after a migration, in the new theater.
    Migrated,
    /// Called after a migration that has failed.
    MigrationFailed,
}

impl HookKind {
    /// Returns the kind that `#[name]` marks.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "started" => Some(Self::Started),
            "stopped" => Some(Self::Stopped),
            "terminated" => Some(Self::Terminated),
            "receive_timeout" => Some(Self::ReceiveTimeout),
            "migrating" => Some(Self::Migrating),
            "migrated" => Some(Self::Migrated),
            "migration_failed" => Some(Self::MigrationFailed),
            _ => None,
        }
    }

    /// Returns whether the hook is about migrations, which only mobile actors have.
    fn is_of_migrations(self) -> bool {
        matches!(self, Self::Migrating | Self::Migrated | Self::MigrationFailed)
    }

    /// Returns the kind that is meant by a name of another framework.
    fn meant_by(name: &str) -> Option<Self> {
        match name {
            "starting" | "on_start" | "pre_start" | "post_start" => Some(Self::Started),
            "stopping" | "on_stop" | "pre_stop" | "post_stop" => Some(Self::Stopped),
            "on_link_died" => Some(Self::Terminated),
            _ => None,
        }
    }

    /// Returns the name of the attribute and of the method of `Actor`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Terminated => "terminated",
            Self::ReceiveTimeout => "receive_timeout",
            Self::Migrating => "migrating",
            Self::Migrated => "migrated",
            Self::MigrationFailed => "migration_failed",
        }
    }

    /// Returns the argument besides the context: its name, its type, and the error where it is missing.
    fn argument(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::Terminated => {
                Some(("terminated", "Terminated", "a `#[terminated]` method takes the notice of the end"))
            }
            Self::MigrationFailed => {
                Some(("why", "MigrateError", "a `#[migration_failed]` method takes the error of the migration"))
            }
            Self::Started | Self::Stopped | Self::ReceiveTimeout | Self::Migrating | Self::Migrated => None,
        }
    }

    /// Returns the signature that the user should write.
    fn form(self) -> &'static str {
        match self {
            Self::Started | Self::Stopped | Self::ReceiveTimeout | Self::Migrating | Self::Migrated => {
                "(&mut self, ctx: &mut Context<Self>)"
            }
            Self::MigrationFailed => "(&mut self, why: MigrateError, ctx: &mut Context<Self>)",
            Self::Terminated => "(&mut self, terminated: Terminated, ctx: &mut Context<Self>)",
        }
    }
}

/// Removes an attribute with a hook's name in another framework, and returns an error with the right name.
pub(crate) fn take_misnamed(attrs: &mut Vec<Attribute>) -> Option<syn::Error> {
    let meant = |attr: &Attribute| HookKind::meant_by(&attr.path().get_ident()?.to_string());
    let (at, kind) = attrs.iter().enumerate().find_map(|(at, attr)| Some((at, meant(attr)?)))?;
    let attr = attrs.remove(at);
    let when = match kind {
        HookKind::Started => "runs before the first message",
        HookKind::Stopped => "runs after the last message",
        _ => "runs when an actor has ended that this one watches",
    };
    let text = format!("there is no hook `{}`\nhelp: `#[{}]` {when}", pretty(&attr), kind.name());
    Some(syn::Error::new_spanned(attr, text))
}

/// A hook method, ready to be forwarded to.
pub(crate) struct Hook {
    /// The kind of the hook.
    pub(crate) kind: HookKind,
    pub(crate) method: Ident,
    params: Vec<Param>,
    inherited: Inherited,
}

impl Hook {
    /// Reads `function`, marked with `mark`.
    pub(crate) fn read(
        kind: HookKind,
        function: &ImplItemFn,
        mark: &Attribute,
        actor: &ActorType,
    ) -> syn::Result<Self> {
        let mut errors = Errors::default();
        let (sig, name) = (&function.sig, kind.name());
        let help = format!("help: write `fn {}{}`", sig.ident, kind.form());

        if !matches!(mark.meta, Meta::Path(_)) {
            errors.at(mark, format!("`#[{name}]` takes no arguments"));
        }
        params::check_receiver(sig, &format!("`#[{name}]` method"), &mut errors);
        if let Some(token) = &sig.asyncness {
            errors.at(
                token,
                format!(
                    "a `#[{name}]` method cannot be `async`\nhelp: send `ctx.this()` a message with an `async` method"
                ),
            );
        }
        if let Safety::Unsafe(token) = &sig.safety {
            errors.at(token, format!("a `#[{name}]` method cannot be `unsafe`: the runtime calls it"));
        }
        if !sig.generics.params.is_empty() {
            errors.at(&sig.generics, format!("a `#[{name}]` method cannot be generic\n{help}"));
        }
        match &sig.output {
            ReturnType::Default => {}
            ReturnType::Type(_, ty) if is_unit(ty) => {}
            ReturnType::Type(_, ty) => errors.at(
                ty,
                format!("a `#[{name}]` method returns nothing, because nobody receives its result\nhelp: remove the return type; for an error, call `ctx.fail(error)`"),
            ),
        }
        let params = params::read(sig, actor, &mut errors);
        let mut has_argument = false;
        for param in &params {
            let ty = match param {
                Param::Context => continue,
                Param::Reply(_) => {
                    let text = format!("a `#[{name}]` method has no `Reply`, because it answers no ask\n{help}");
                    errors.at(&sig.ident, text);
                    continue;
                }
                Param::Argument { ty, .. } => ty,
            };
            if !has_argument && kind.argument().is_some_and(|(_, wanted, _)| is_called(ty, wanted)) {
                has_argument = true;
            } else {
                errors.at(ty, format!("the runtime has no `{}` to pass to a `#[{name}]` method\n{help}", pretty(ty)));
            }
        }
        if let (Some((_, _, missing)), false) = (kind.argument(), has_argument) {
            errors.at(&sig.ident, format!("{missing}\n{help}"));
        }
        let inherited = Inherited::new(&function.attrs, &actor.name, name);
        errors.or(Self { kind, method: sig.ident.clone(), params, inherited })
    }

    /// Returns the method of `Actor` that forwards to this hook.
    pub(crate) fn forward(&self, is_generic: bool) -> TokenStream {
        let method = &self.method;
        let span = Span::mixed_site().located_at(method.span());
        let cfgs = &self.inherited.cfgs;
        let of_actor = Ident::new(self.kind.name(), span);
        let has_context = self.params.iter().any(|param| matches!(param, Param::Context));
        let ctx = Ident::new(if has_context { "ctx" } else { "_ctx" }, span);
        let (argument, ty, _) = self.kind.argument().unwrap_or(("told", "Terminated", ""));
        let (argument, ty) = (Ident::new(argument, span), Ident::new(ty, span));
        let argument_param = self.kind.argument().map(|_| quote_spanned!(span=> #argument: ::playhouse::#ty,));
        let passed = self.params.iter().map(|param| match param {
            Param::Context => &ctx,
            // A `Reply` is an error.
            Param::Argument { .. } | Param::Reply(_) => &argument,
        });
        let allow = self.inherited.deprecated.then(|| quote!(#[allow(deprecated)]));
        // Nothing calls the hook of an actor that does not migrate. Of a generic actor, some types may.
        let check = (self.kind.is_of_migrations() && !is_generic).then(|| {
            quote_spanned! {span=>
                fn migrates<A: ::playhouse::Mobile>() {}
                migrates::<Self>();
            }
        });
        quote_spanned! {span=>
            #(#cfgs)*
            #allow
            fn #of_actor(&mut self, #argument_param #ctx: &mut ::playhouse::Context<Self>) {
                #check
                Self::#method(self, #(#passed),*);
            }
        }
    }
}

/// Returns an error for a method that looks like a hook but is unmarked, because nothing would call it.
pub(crate) fn check_unmarked(function: &ImplItemFn, actor: &ActorType) -> Option<syn::Error> {
    let kind = HookKind::from_name(&function.sig.ident.to_string())?;
    let params = params::read(&function.sig, actor, &mut Errors::default());
    let is_of_hook = |param: &Param| match param {
        Param::Context => true,
        Param::Argument { ty, .. } => kind.argument().is_some_and(|(_, wanted, _)| is_called(ty, wanted)),
        Param::Reply(_) => false,
    };
    params.iter().any(is_of_hook).then(|| {
        let name = kind.name();
        let text = format!("nothing calls this method, although it looks like `Actor::{name}`\nhelp: mark it with `#[{name}]`, or rename it");
        syn::Error::new_spanned(&function.sig.ident, text)
    })
}

fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

fn is_called(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}
