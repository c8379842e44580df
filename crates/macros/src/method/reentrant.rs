//! `#[message(reentrant)]`: methods that return the future of the answer.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{
    AngleBracketedGenericArguments, CapturedParam, GenericArgument, PathArguments, ReturnType, Signature, Token, Type,
    TypeImplTrait, TypeParamBound,
};

use crate::syntax::errors::pretty;

/// Returns the type of the answer: the output of the future in the method's return type.
pub(crate) fn answer(sig: &Signature, has_reply: bool) -> syn::Result<&Type> {
    let form = "-> impl Future<Output = Answer> + Send + use<>";
    if let Some(token) = &sig.asyncness {
        let text = format!(
            "the future of an `async` method borrows the actor, and the actor could not handle other messages until it ends\n\
             help: write `fn {}(..) {form}`, take what it needs from `self`, and return `async move {{ .. }}`",
            sig.ident
        );
        return Err(syn::Error::new_spanned(token, text));
    }
    if has_reply {
        let text = "a reentrant method answers with the output of its future, and takes no `Reply`\n\
                    help: remove one of the two";
        return Err(syn::Error::new_spanned(&sig.inputs, text));
    }
    let wrong = |tokens: &dyn ToTokens, found: &str| {
        let text =
            format!("a reentrant method returns the future of the answer, and this {found}\nhelp: write `{form}`");
        syn::Error::new_spanned(tokens.to_token_stream(), text)
    };
    let ty = match &sig.output {
        ReturnType::Default => return Err(wrong(&sig.ident, "returns nothing")),
        ReturnType::Type(_, ty) => ty,
    };
    let Type::ImplTrait(future) = &**ty else {
        return Err(wrong(ty, &format!("returns `{}`", pretty(ty))));
    };
    let Some(answer) = output(future) else {
        return Err(wrong(ty, "is no `Future` with an `Output`"));
    };
    let Some(captures) = captured(future) else {
        let text = format!(
            "the future may borrow the actor, and the actor could not handle other messages until it ends\n\
             help: write `{} + use<..>` with the generic types that it needs, if any, and no lifetimes: `use<>`",
            pretty(ty)
        );
        return Err(syn::Error::new_spanned(ty, text));
    };
    if let Some(lifetime) = captures.iter().find(|param| matches!(param, CapturedParam::Lifetime(_))) {
        let text = "the future may not borrow the actor or its context, because other messages use them before it ends\n\
                    help: remove the lifetime, and take what the future needs before `async move`, \
                    such as `let this = ctx.this();` or `let pause = ctx.sleep(time);`";
        return Err(syn::Error::new_spanned(lifetime, text));
    }
    Ok(answer)
}

/// Returns the `Output` of `impl Future<Output = ..>`.
fn output(future: &TypeImplTrait) -> Option<&Type> {
    future.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last().filter(|last| last.ident == "Future")?;
        let PathArguments::AngleBracketed(AngleBracketedGenericArguments { args, .. }) = &last.arguments else {
            return None;
        };
        args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => Some(&output.ty),
            _ => None,
        })
    })
}

/// Returns the parameters of `use<..>`, if there is one.
fn captured(future: &TypeImplTrait) -> Option<&Punctuated<CapturedParam, Token![,]>> {
    future.bounds.iter().find_map(|bound| match bound {
        TypeParamBound::PreciseCapture(capture) => Some(&capture.params),
        _ => None,
    })
}
