//! The attribute [`macro@test`], which the crate `rowplane` has as `rowplane::test`.
#![forbid(unsafe_code)]

mod settings;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, ItemFn, Result, Type, parse_macro_input};

use self::settings::Settings;

/// Makes a test of an async function, with a server in memory of its own, which is gone after it.
///
/// ```ignore
/// #[rowplane::test]
/// async fn a_namespace_begins_active(client: kube::Client) -> Result<(), kube::Error> {
///     let made = Api::<Namespace>::all(client).create(&PostParams::default(), &shop()).await?;
///     assert_eq!(made.status.unwrap().phase.as_deref(), Some("Active"));
///     Ok(())
/// }
/// ```
///
/// An argument that is a reference is the server, `&rowplane::Server`. Every other one is a client: its type has a function `new`
/// with the arguments of `kube::Client::new`, a `tower::Service` and the name of a namespace, which is `default`. The function may
/// return all that a test may return.
///
/// | | |
/// |---|---|
/// | `crds = "config/crd"`, or `crds = ["a.yaml", "b"]` | the server has the CustomResourceDefinitions of these files and directories, whose paths begin at the package's |
/// | `base = BASE` | the server is a fork of this `rowplane::testing::Base`, which all tests share |
/// | `builder = EXPRESSION` | a `rowplane::server::Builder` in the place of `rowplane::Server::builder()` |
/// | `flavor = "multi_thread"` | the test's runtime has several threads, as `#[tokio::test]` has it |
///
/// The runtime is tokio's. What the test has spawned ends with it.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let settings = parse_macro_input!(arguments as Settings);
    let function = parse_macro_input!(function as ItemFn);
    expand(&settings, &function).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(settings: &Settings, function: &ItemFn) -> Result<Tokens> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span, "a test on a server is an `async fn`"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new(sig.generics.span(), "nobody says what the parameters of a test are"));
    }
    let (name, inputs, output) = (&sig.ident, &sig.inputs, &sig.output);
    let handed = inputs.iter().map(argument).collect::<Result<Vec<_>>>()?;
    let ((runs, server), is_threaded) = (settings.runs(), settings.is_threaded);
    Ok(quote! {
        #(#attrs)*
        #[::core::prelude::v1::test]
        #vis fn #name() #output {
            async fn #name(#inputs) #output #block
            #runs(
                #server,
                #is_threaded,
                async |server: &::rowplane::Server| #name(#(#handed),*).await,
            )
        }
    })
}

/// The value that a test is handed for an argument.
fn argument(argument: &FnArg) -> Result<Tokens> {
    let FnArg::Typed(argument) = argument else {
        return Err(Error::new(argument.span(), "a test has no `self`"));
    };
    Ok(match &*argument.ty {
        Type::Reference(_) => quote!(server),
        client => quote_spanned!(client.span()=> <#client>::new(server.service(), "default")),
    })
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::expand;

    /// The error of an attribute with these arguments at this function.
    fn refused(arguments: &str, function: &str) -> String {
        let expanded = parse_str(arguments)
            .and_then(|settings| expand(&settings, &parse_str(function).expect("a function")));
        expanded.expect_err("it is refused").to_string()
    }

    #[test]
    fn mistakes_are_told_where_they_are_made() {
        let test = "async fn a(client: kube::Client) {}";
        for (arguments, function, why) in [
            ("", "fn a() {}", "a test on a server is an `async fn`"),
            ("", "async fn a<T>(client: T) {}", "nobody says what the parameters of a test are"),
            ("", "async fn a(&self) {}", "a test has no `self`"),
            ("crd = \"a\"", test, "the settings are crds, builder, base and flavor"),
            ("base = A, crds = \"a\"", test, "a fork has the settings and the definitions of its base"),
            ("crds = 1", test, "a text in quotes is expected"),
            ("crds = [\"a\", b]", test, "a text in quotes is expected"),
            ("flavor = \"threads\"", test, "the flavors are current_thread and multi_thread"),
            ("crds", test, "expected `=`"),
        ] {
            assert!(refused(arguments, function).ends_with(why), "{}", refused(arguments, function));
        }
    }
}
