//! Attributes that a message inherits from its method.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token, parse_quote};

/// The attributes of a method that concern its generated code.
pub(crate) struct Inherited {
    /// `#[cfg(..)]`, for every generated item
    pub(crate) cfgs: Vec<Attribute>,
    /// documentation, `#[allow]` and `#[deprecated]`, for the message struct
    pub(crate) on_struct: Vec<Attribute>,
    /// Whether the generated code must allow the use of a deprecated message.
    pub(crate) deprecated: bool,
}

impl Inherited {
    /// Sorts the attributes of the method `method` of the actor `actor`.
    pub(crate) fn new(attrs: &[Attribute], actor: &str, method: &str) -> Self {
        let mut cfgs = Vec::new();
        let mut on_struct = Vec::new();
        let mut docs = Docs { actor, open: true, text: false };
        for attr in attrs {
            match last_name(attr.path()).as_str() {
                "cfg" => cfgs.push(attr.clone()),
                "doc" => on_struct.extend(docs.inherit(attr)),
                "allow" | "deprecated" => on_struct.push(attr.clone()),
                "cfg_attr" => {
                    cfgs.extend(filtered(attr, &["cfg"]));
                    on_struct.extend(filtered(attr, &["doc", "allow", "deprecated"]));
                }
                _ => {}
            }
        }
        if !docs.text {
            let text = format!(" A message: the actor handles it with `{actor}::{method}`.");
            on_struct.insert(0, parse_quote!(#[doc = #text]));
        }
        let deprecated = on_struct.iter().any(|attr| attr.to_token_stream().to_string().contains("deprecated"));
        Self { cfgs, on_struct, deprecated }
    }
}

/// Returns whether there is a `#[cfg]`, so that an item may be absent.
pub(crate) fn conditional(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident("cfg") || filtered(attr, &["cfg"]).is_some())
}

/// The documentation of a method, on its way to the message.
struct Docs<'a> {
    actor: &'a str,
    /// Whether no example has come yet. Examples stay with the method, because they would be tested twice.
    open: bool,
    text: bool,
}

impl Docs<'_> {
    fn inherit(&mut self, attr: &Attribute) -> Option<Attribute> {
        let Meta::NameValue(pair) = &attr.meta else {
            return Some(attr.clone());
        };
        let Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) = &pair.value else {
            self.text = true;
            return Some(attr.clone());
        };
        let text = literal.value();
        let mut kept = Vec::new();
        for line in text.split('\n') {
            let start = line.trim_start();
            self.open &= !(start.starts_with("```") || start.starts_with("~~~") || start.starts_with("# Example"));
            if self.open {
                self.text |= !start.is_empty();
                kept.push(line.replace("Self::", &format!("{}::", self.actor)));
            }
        }
        let kept = kept.join("\n");
        let span = literal.span();
        self.open.then(|| {
            let literal = syn::LitStr::new(&kept, span);
            parse_quote!(#[doc = #literal])
        })
    }
}

/// Returns `#[cfg_attr(condition, ..)]` with only those attributes that have one of `names`.
fn filtered(attr: &Attribute, names: &[&str]) -> Option<Attribute> {
    if !attr.path().is_ident("cfg_attr") {
        return None;
    }
    let parts = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let mut parts = parts.into_iter();
    let condition = parts.next()?;
    let kept: Vec<_> = parts.filter(|part| names.contains(&last_name(part.path()).as_str())).collect();
    (!kept.is_empty()).then(|| parse_quote!(#[cfg_attr(#condition, #(#kept),*)]))
}

fn last_name(path: &syn::Path) -> String {
    path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Inherited;
    use quote::ToTokens;
    use syn::{ImplItemFn, parse_quote};

    fn inherited(method: &ImplItemFn) -> (Vec<String>, Vec<String>) {
        let inherited = Inherited::new(&method.attrs, "Counter", "add");
        let texts = |attrs: Vec<syn::Attribute>| attrs.iter().map(|a| a.to_token_stream().to_string()).collect();
        (texts(inherited.cfgs), texts(inherited.on_struct))
    }

    #[test]
    fn docs_come_along_up_to_the_examples() {
        let (cfgs, on_struct) = inherited(&parse_quote! {
            /// Adds, see [`Self::get`].
            ///
            /// # Examples
            /// ```
            /// counter.add(1)
            /// ```
            #[inline]
            #[cfg(unix)]
            #[cfg_attr(windows, inline, allow(dead_code), cfg(test))]
            fn add(&mut self) {}
        });
        assert_eq!(cfgs, ["# [cfg (unix)]", "# [cfg_attr (windows , cfg (test))]"]);
        assert_eq!(
            on_struct,
            [
                "# [doc = \" Adds, see [`Counter::get`].\"]",
                "# [doc = \"\"]",
                "# [cfg_attr (windows , allow (dead_code))]"
            ]
        );
    }

    #[test]
    fn a_message_without_docs_gets_a_line() {
        let (_, on_struct) = inherited(&parse_quote!(
            #[deprecated]
            fn add(&mut self) {}
        ));
        assert_eq!(
            on_struct,
            ["# [doc = \" A message: the actor handles it with `Counter::add`.\"]", "# [deprecated]"]
        );
    }
}
