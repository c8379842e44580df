//! Several errors at once, because the user should see all mistakes of a block in one build.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The errors so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error that points at `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, text: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(tokens, text));
    }

    /// Adds an error.
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value of `result`, or keeps its error.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Returns `value`, or the errors.
    pub(crate) fn or<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }

    /// Returns a `compile_error!` for each error.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(syn::Error::into_compile_error).unwrap_or_default()
    }
}

/// Returns the source form of a type, a path or a pattern, for the text of an error.
pub(crate) fn pretty(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        (" : ", ": "),
        ("& ", "&"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("[ ", "["),
        (" ]", "]"),
    ] {
        text = text.replace(from, to);
    }
    text.replace("->", " -> ").replace("  ", " ")
}
