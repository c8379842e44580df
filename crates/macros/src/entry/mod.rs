//! `#[main]` and `#[test]`: functions with a system.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::Parser as _;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, LitInt, Pat, Result, Type, parse2};

use crate::syntax::errors::pretty;

/// The options of an attribute.
#[derive(Default)]
struct Options {
    workers: Option<LitInt>,
    seeds: Option<LitInt>,
    seed: Option<LitInt>,
    on_threads: bool,
}

impl Options {
    fn parse(args: TokenStream, of_tests: bool) -> Result<Options> {
        let mut options = Options::default();
        let known = if of_tests { "`workers`, `seeds`, `seed` or `threads`" } else { "`workers`" };
        let parser = syn::meta::parser(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match name.as_str() {
                "workers" => options.workers = Some(meta.value()?.parse()?),
                "seeds" if of_tests => options.seeds = Some(meta.value()?.parse()?),
                "seed" if of_tests => options.seed = Some(meta.value()?.parse()?),
                "threads" if of_tests => options.on_threads = true,
                "tokio" => {
                    return Err(meta.error(
                        "handlers on a tokio runtime are an option of the system\nhelp: write `#[tokio::main]`, and start the system by `System::builder().tokio(Handle::current())`",
                    ));
                }
                _ => return Err(meta.error(format!("there is no such option\nhelp: write {known}"))),
            }
            Ok(())
        });
        parser.parse2(args)?;
        let Options { seeds, seed, on_threads, .. } = &options;
        if let Some(seeds) = seeds.as_ref().filter(|seeds| seeds.base10_digits() == "0") {
            return Err(Error::new(
                seeds.span(),
                "the test would not run with 0 seeds\nhelp: write the number of seeds, such as `seeds = 20`",
            ));
        }
        if let (Some(seeds), Some(_)) = (seeds, seed) {
            return Err(Error::new(seeds.span(), "`seed` is given besides\nhelp: remove `seeds` or `seed`"));
        }
        if let (true, Some(number)) = (on_threads, seeds.as_ref().or(seed.as_ref())) {
            return Err(Error::new(number.span(), "a system on threads has no seed\nhelp: remove this, or `threads`"));
        }
        Ok(options)
    }
}

pub(crate) fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    let name = parse2::<ItemFn>(item.clone()).map(|function| function.sig.ident);
    expand(args, item, false).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        // A program without `main` would cause another error.
        let stub = name.ok().map(|name| quote!(fn #name() {}));
        quote!(#error #stub)
    })
}

pub(crate) fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    expand(args, item, true).unwrap_or_else(|error| error.to_compile_error())
}

fn expand(args: TokenStream, item: TokenStream, is_test: bool) -> Result<TokenStream> {
    let mut function: ItemFn = parse2(item)?;
    let options = Options::parse(args, is_test)?;
    let (system, ty) = system_of(&function)?;
    let is_async = function.sig.asyncness.take().is_some();
    function.sig.inputs.clear();
    let ItemFn { attrs, vis, sig, block, .. } = &function;
    let span = Span::mixed_site().located_at(sig.ident.span());
    let output = &sig.output;
    let workers = options.workers.map(|workers| quote_spanned!(span=> .workers(#workers)));
    let builder = quote_spanned!(span=> ::playhouse::System::builder() #workers);
    let asyncness = is_async.then(|| quote_spanned!(span=> async));
    // The name is the user's, because messages of the compiler show it.
    let name = &sig.ident;
    let inner = quote_spanned!(span=> #asyncness fn #name(#system: #ty) #output #block);
    let body = if is_async {
        quote_spanned!(span=> |__system: &::playhouse::System| ::playhouse::__macros::entry::block_on(__system, #name(__system)))
    } else {
        quote_spanned!(span=> #name)
    };
    let run = match (is_test, options.on_threads) {
        (false, _) => quote_spanned!(span=> ::playhouse::__macros::entry::main(#builder, #body)),
        (true, true) => quote_spanned!(span=> ::playhouse::__macros::entry::test_on_threads(#builder, #body)),
        (true, false) => {
            let seeds = match (options.seed, options.seeds) {
                (Some(seed), _) => quote_spanned!(span=> #seed..=#seed),
                (None, Some(seeds)) => quote_spanned!(span=> 0..=(#seeds - 1)),
                (None, None) => quote_spanned!(span=> ::playhouse::__macros::entry::SEEDS),
            };
            quote_spanned!(span=> ::playhouse::__macros::entry::test(|| #builder, #seeds, #body))
        }
    };
    let test = is_test.then(|| quote_spanned!(span=> #[::core::prelude::v1::test]));
    Ok(quote! {
        #test
        #(#attrs)*
        #vis #sig {
            #inner
            #run
        }
    })
}

/// Returns the pattern of the system's parameter, and its type as written, because an unused import of the type would
/// be a warning.
fn system_of(function: &ItemFn) -> Result<(Pat, Type)> {
    let sig = &function.sig;
    let help = format!("help: write `fn {}(system: &System)`", sig.ident);
    if !sig.generics.params.is_empty() {
        return Err(Error::new(
            sig.generics.span(),
            format!("the function cannot be generic, because nothing chooses its types\n{help}"),
        ));
    }
    if let Some(FnArg::Receiver(receiver)) = sig.inputs.first() {
        return Err(Error::new(receiver.span(), format!("the function cannot be a method\n{help}")));
    }
    let mut inputs = sig.inputs.iter();
    let (first, more) = (inputs.next(), inputs.next());
    let Some(FnArg::Typed(typed)) = first else {
        return Err(Error::new(sig.ident.span(), format!("the function takes no system\n{help}")));
    };
    if let Some(more) = more {
        return Err(Error::new(more.span(), format!("the function takes a system and nothing else\n{help}")));
    }
    let is_system = |ty: &Type| matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "System"));
    match &*typed.ty {
        Type::Reference(reference) if reference.mutability.is_none() && is_system(&reference.elem) => {
            Ok(((*typed.pat).clone(), (*typed.ty).clone()))
        }
        other => {
            Err(Error::new(other.span(), format!("the function takes a `&System`, not a `{}`\n{help}", pretty(other))))
        }
    }
}
