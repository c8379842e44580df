//! The names of messages: the method's name in `CamelCase`, unless it would hide another name.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::LitStr;
use syn::ext::IdentExt;

/// Names that nearly every module uses. A message with such a name would hide them, and the errors would appear far
/// from the method. An explicit `name = ".."` may use them.
const IN_USE: &[&str] = &[
    // the standard prelude, and what is imported everywhere
    "AsMut AsRef AsyncFn AsyncFnMut AsyncFnOnce Box Clone Copy Debug Default DoubleEndedIterator",
    "Drop Eq Err ExactSizeIterator Extend Fn FnMut FnOnce From FromIterator Future Hash Into",
    "IntoFuture IntoIterator Iterator None Ok Option Ord PartialEq PartialOrd Result Send Sized",
    "Some String Sync ToOwned ToString TryFrom TryInto Unpin Vec",
    // the prelude of Playhouse, as far as the code of an actor names it
    "Actor ActorRef AsyncHandler Context DeferredHandler Handler Message Recipient Reply System Terminated",
];

/// Returns the name of the message of `method`, if the user gave none.
pub(crate) fn of_method(method: &Ident) -> syn::Result<Ident> {
    let camel = camel_case(&method.unraw().to_string());
    let why = if IN_USE.iter().any(|line| line.split(' ').any(|used| used == camel)) {
        "and hide the one from the prelude"
    } else {
        match syn::parse_str::<Ident>(&camel) {
            Ok(mut name) => {
                name.set_span(method.span());
                return Ok(name);
            }
            Err(_) if camel == "Self" => "a reserved word",
            Err(_) => "which is not a name of a type",
        }
    };
    let text = format!(
        "the message of `{method}` would be called `{camel}`, {why}\n\
         help: choose another name with `#[message(name = \"..\")]`"
    );
    Err(syn::Error::new(method.span(), text))
}

/// Returns the name that the user gave with `name = ".."`.
pub(crate) fn given(literal: &LitStr) -> syn::Result<Ident> {
    let text = literal.value();
    match syn::parse_str::<Ident>(&text) {
        Ok(mut name) => {
            name.set_span(literal.span());
            Ok(name)
        }
        Err(_) if syn::parse_str::<WithKeywords>(&text).is_ok() => {
            Err(syn::Error::new(literal.span(), format!("`{text}` is a reserved word and cannot name a message")))
        }
        Err(_) => Err(syn::Error::new(
            literal.span(),
            format!(
                "{literal:?} cannot name a message\nhelp: write a name of a type, such as {:?}",
                "Increment",
                literal = text
            ),
        )),
    }
}

/// Returns whether `tokens` mention `name` on its own, not at the end of a longer path.
pub(crate) fn is_in(name: &Ident, tokens: TokenStream) -> bool {
    let mut colons = 0; // two of them end the rest of a path, one ends the name of a parameter
    tokens.into_iter().any(|token| {
        let before = std::mem::take(&mut colons);
        match token {
            TokenTree::Ident(ident) => before < 2 && ident == *name,
            TokenTree::Group(group) => is_in(name, group.stream()),
            TokenTree::Punct(punct) => {
                colons = if punct.as_char() == ':' { before + 1 } else { 0 };
                false
            }
            TokenTree::Literal(_) => false,
        }
    })
}

/// Any identifier, including keywords.
struct WithKeywords;

impl syn::parse::Parse for WithKeywords {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        Ident::parse_any(input).map(|_| Self)
    }
}

/// Converts `get_all` to `GetAll`. Capital letters stay.
fn camel_case(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{camel_case, given, is_in, of_method};
    use proc_macro2::{Ident, Span};
    use quote::quote;
    use syn::LitStr;

    fn named(method: &str) -> Result<String, String> {
        let method: Ident = syn::parse_str(method).map_err(|e| e.to_string())?;
        of_method(&method).map(|name| name.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn methods_become_camel_case() {
        for (method, name) in [
            ("add", "Add"),
            ("get_all", "GetAll"),
            ("r#move", "Move"),
            ("get_2d", "Get2d"),
            ("_quiet", "Quiet"),
            ("trailing_", "Trailing"),
            ("double__bar", "DoubleBar"),
            ("camelCase", "CamelCase"),
            ("été", "Été"),
        ] {
            assert_eq!(named(method).as_deref(), Ok(name));
        }
        assert_eq!(camel_case("_"), "");
    }

    #[test]
    fn a_bad_name_is_an_error() {
        for (method, why) in [
            ("self_", "called `Self`, a reserved word"),
            ("ok", "called `Ok`, and hide"),
            ("context", "called `Context`, and hide"),
            ("_2d", "called `2d`, which is not a name"),
        ] {
            let error = named(method).unwrap_err();
            assert!(error.contains(why), "{method}: {error}");
        }
    }

    #[test]
    fn given_names_may_be_any_name() {
        let given = |text| given(&LitStr::new(text, Span::call_site())).map_err(|e| e.to_string());
        assert_eq!(given("Ok").map(|name| name.to_string()).as_deref(), Ok("Ok"));
        assert!(given("Self").is_err_and(|e| e.contains("reserved word")));
        assert!(given("two words").is_err_and(|e| e.contains("cannot name a message")));
        assert!(given("").is_err());
    }

    #[test]
    fn a_name_is_found_where_it_stands_alone() {
        let order = Ident::new("Order", Span::call_site());
        for (tokens, found) in [
            (quote!(order: Order), true),
            (quote!(all: Vec<(u8, Order)>), true),
            (quote!(one: Order::Part), true),
            (quote!(one: shop::Order), false),
            (quote!(one: ::shop::Order<u8>), false),
            (quote!(one: ::Order), false),
            (quote!(one: OrderId), false),
        ] {
            assert_eq!(is_in(&order, tokens.clone()), found, "{tokens}");
        }
    }
}
