//! The arguments of the attribute.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Result, Token};

/// The settings of a test.
#[derive(Default)]
pub struct Settings {
    crds: Vec<LitStr>,
    builder: Option<Expr>,
    /// The base that the server is a fork of.
    base: Option<Expr>,
    pub is_threaded: bool,
}

/// One setting, `NAME = EXPRESSION`.
struct Setting {
    name: Ident,
    value: Expr,
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Self { name, value: input.parse()? })
    }
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut settings = Self::default();
        for Setting { name, value } in Punctuated::<Setting, Token![,]>::parse_terminated(input)? {
            match name.to_string().as_str() {
                "crds" => settings.crds.extend(texts(value)?),
                "builder" => settings.builder = Some(value),
                "base" => settings.base = Some(value),
                "flavor" => settings.is_threaded = is_threaded(&text(value)?)?,
                _ => return Err(Error::new(name.span(), "the settings are crds, builder, base and flavor")),
            }
        }
        match &settings.base {
            Some(base) if settings.builder.is_some() || !settings.crds.is_empty() => {
                Err(Error::new_spanned(base, "a fork has the settings and the definitions of its base"))
            }
            _ => Ok(settings),
        }
    }
}

impl Settings {
    /// The function that runs the test, and the expression that it makes the server of.
    pub fn runs(&self) -> (Tokens, Tokens) {
        match &self.base {
            Some(base) => (quote!(::rowplane::testing::run_on_fork), quote!(&#base)),
            None => (quote!(::rowplane::testing::run), self.builder()),
        }
    }

    /// The expression of the server's builder.
    fn builder(&self) -> Tokens {
        let builder = match &self.builder {
            Some(builder) => quote!(#builder),
            None => quote!(::rowplane::Server::builder()),
        };
        let crds = &self.crds;
        match crds.is_empty() {
            true => builder,
            // Tests of a workspace may be started from any folder of it.
            false => quote! {
                #builder.crds([#(::std::path::Path::new(::core::env!("CARGO_MANIFEST_DIR")).join(#crds)),*])
            },
        }
    }
}

fn texts(value: Expr) -> Result<Vec<LitStr>> {
    match value {
        Expr::Array(array) => array.elems.into_iter().map(text).collect(),
        one => Ok(vec![text(one)?]),
    }
}

fn text(value: Expr) -> Result<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => Err(Error::new_spanned(other, "a text in quotes is expected")),
    }
}

fn is_threaded(flavor: &LitStr) -> Result<bool> {
    match flavor.value().as_str() {
        "multi_thread" => Ok(true),
        "current_thread" => Ok(false),
        _ => Err(Error::new(flavor.span(), "the flavors are current_thread and multi_thread")),
    }
}
