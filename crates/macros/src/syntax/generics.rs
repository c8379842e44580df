//! Generics of the `impl` block for messages, and `Self` outside of the block.

use std::collections::BTreeSet;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{GenericParam, Generics, Type, TypeParamBound, WherePredicate};

/// The type of an actor, with the generics of its `impl` block.
pub(crate) struct ActorType {
    /// The type after `impl`.
    pub(crate) ty: Type,
    /// The last segment of its path, for errors and documentation.
    pub(crate) name: String,
    /// The generics of the block, with `Self` replaced in the `where` clause.
    pub(crate) generics: Generics,
}

impl ActorType {
    /// Returns `node` with `Self` written out, for use outside of the `impl` block.
    pub(crate) fn without_self<T: ToTokens + syn::parse::Parse>(&self, node: &T) -> syn::Result<T> {
        syn::parse2(replace_self(node.to_token_stream(), &self.ty))
    }

    /// Returns the names of the generic types and constants that `tokens` mention.
    pub(crate) fn mentioned(&self, tokens: impl ToTokens) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let all = self.generics.params.iter().filter_map(param_name).collect();
        collect(tokens.to_token_stream(), &all, &mut found);
        found
    }

    /// Returns the generics named in `used`, with the bounds and `more` predicates that mention no others.
    pub(crate) fn subset(&self, used: &BTreeSet<String>, more: &[WherePredicate]) -> Generics {
        let mut generics = Generics::default();
        for param in &self.generics.params {
            if !param_name(param).is_some_and(|name| used.contains(&name)) {
                continue;
            }
            let mut param = param.clone();
            if let GenericParam::Type(ty) = &mut param {
                ty.bounds = std::mem::take(&mut ty.bounds)
                    .into_iter()
                    .filter(|bound: &TypeParamBound| self.mentioned(bound).is_subset(used))
                    .collect();
                ty.colon_token = (!ty.bounds.is_empty()).then(Default::default);
            }
            generics.params.push(param);
        }
        let of_block = self.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        for predicate in of_block.chain(more) {
            let mentioned = self.mentioned(predicate);
            if !mentioned.is_empty() && mentioned.is_subset(used) {
                generics.make_where_clause().predicates.push(predicate.clone());
            }
        }
        generics
    }

    /// Returns all generics of the block, with `more` predicates.
    pub(crate) fn with(&self, more: &[WherePredicate]) -> Generics {
        let mut generics = self.generics.clone();
        if !more.is_empty() {
            generics.make_where_clause().predicates.extend(more.iter().cloned());
        }
        generics
    }
}

/// Returns the name of a generic type or constant, or `None` for a lifetime.
fn param_name(param: &GenericParam) -> Option<String> {
    match param {
        GenericParam::Type(ty) => Some(ty.ident.to_string()),
        GenericParam::Const(constant) => Some(constant.ident.to_string()),
        GenericParam::Lifetime(_) => None,
    }
}

fn collect(tokens: TokenStream, names: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                if names.contains(&name) {
                    found.insert(name);
                }
            }
            TokenTree::Group(group) => collect(group.stream(), names, found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Writes `ty` for `Self`, and `<ty>` before `::`.
fn replace_self(tokens: TokenStream, ty: &Type) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "Self" => {
                let path_follows = matches!(tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == ':'
                    && p.spacing() == proc_macro2::Spacing::Joint);
                out.extend(if path_follows { quote!(<#ty>) } else { quote!(#ty) });
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replace_self(group.stream(), ty));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            other => out.extend([other]),
        }
    }
    out
}

/// Returns whether `named` is `Self` or the actor's type.
pub(crate) fn is_actor(named: &Type, actor: &ActorType) -> bool {
    let text = |ty: &Type| ty.to_token_stream().to_string();
    matches!(named, Type::Path(path) if path.path.is_ident("Self")) || text(named) == text(&actor.ty)
}

#[cfg(test)]
mod tests {
    use super::{ActorType, replace_self};
    use quote::{ToTokens, quote};
    use syn::{ItemImpl, parse_quote};

    fn cache() -> ActorType {
        let block: ItemImpl = parse_quote! {
            impl<K: Eq + Into<V>, V: Clone, const N: usize> Cache<K, V, N> where Vec<K>: Send, V: Sync {}
        };
        ActorType { ty: *block.self_ty, name: "Cache".into(), generics: block.generics }
    }

    #[test]
    fn self_is_written_out() {
        let ty = parse_quote!(Cache<K>);
        let out = replace_self(quote!(Vec<(Self, [u8; Self::SIZE])>), &ty).to_string();
        assert_eq!(out.replace(' ', ""), "Vec<(Cache<K>,[u8;<Cache<K>>::SIZE])>");
    }

    #[test]
    fn a_message_has_the_generics_it_mentions() {
        let cache = cache();
        let used = cache.mentioned(quote!(Vec<[K; N]>));
        assert_eq!(used.iter().collect::<Vec<_>>(), ["K", "N"]);
        let generics = cache.subset(&used, &[parse_quote!(V: Copy), parse_quote!(K: Copy)]);
        let (declared, _, clause) = generics.split_for_impl();
        assert_eq!(declared.to_token_stream().to_string(), "< K : Eq , const N : usize >");
        assert_eq!(clause.to_token_stream().to_string(), quote!(where Vec<K>: Send, K: Copy).to_string());
    }

    #[test]
    fn a_message_without_generics_has_none() {
        let cache = cache();
        let generics = cache.subset(&cache.mentioned(quote!(u64)), &[]);
        assert!(generics.params.is_empty() && generics.where_clause.is_none());
    }
}
