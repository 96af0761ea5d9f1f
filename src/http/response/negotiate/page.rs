//! The forms of `/flagz` and `/statusz`: text, or an object for those who name its kind.

use super::accept::{Clause, clauses};
use super::only;
use crate::api::error::Error;
use crate::codec::media_type::MediaType;

pub const GROUP: &str = "config.k8s.io";

/// A version of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageVersion {
    V1Alpha1,
    V1Beta1,
}

impl PageVersion {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    Text,
    Object { media: MediaType, version: PageVersion, pretty: bool },
}

/// Chooses the form of a page whose object is of `kind`. Without a header it is text.
pub fn negotiate(accept: Option<&str>, kind: &str) -> Result<Chosen, Error> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else { return Ok(Chosen::Text) };
    clauses(accept)
        .iter()
        .find_map(|clause| chosen(clause, kind))
        .ok_or_else(|| only("application/json, application/yaml, text/plain"))
}

fn chosen(clause: &Clause<'_>, kind: &str) -> Option<Chosen> {
    let is_given = |name| clause.param(name).is_some_and(|value| !value.is_empty());
    if is_given("stream") || is_given("sv") {
        return None;
    }
    let names = ["g", "v", "as"].map(|name| clause.param(name));
    if names.iter().all(Option::is_none) {
        return clause.matches("text", "plain").then_some(Chosen::Text);
    }
    let media = [MediaType::Json, MediaType::Yaml];
    let media = media.into_iter().find(|media| clause.matches("application", media.subtype()))?;
    let version = match names.map(Option::unwrap_or_default) {
        [GROUP, "v1alpha1", named] if named == kind => PageVersion::V1Alpha1,
        [GROUP, "v1beta1", named] if named == kind => PageVersion::V1Beta1,
        _ => return None,
    };
    Some(Chosen::Object { media, version, pretty: clause.param("pretty") == Some("1") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_unless_the_kind_is_named() {
        let chosen = |accept: &str| negotiate(Some(accept), "Flagz").ok();
        for text in ["", " ", "*/*", "text/plain", "text/*", "application/json, text/plain;q=0.1"] {
            assert_eq!(chosen(text), Some(Chosen::Text), "{text}");
        }
        let object = |media, version| Some(Chosen::Object { media, version, pretty: false });
        assert_eq!(
            chosen("application/json;as=Flagz;v=v1beta1;g=config.k8s.io"),
            object(MediaType::Json, PageVersion::V1Beta1)
        );
        assert_eq!(
            chosen("application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz, text/plain;q=0.5"),
            object(MediaType::Yaml, PageVersion::V1Alpha1)
        );
        for other in [
            "application/json",
            "application/json;as=Statusz;v=v1beta1;g=config.k8s.io",
            "application/json;as=Flagz;v=v1;g=config.k8s.io",
            "application/vnd.kubernetes.protobuf;as=Flagz;v=v1beta1;g=config.k8s.io",
            "text/plain;as=Flagz;v=v1beta1;g=config.k8s.io",
            "text/plain;stream=watch",
            "text/html",
        ] {
            assert_eq!(chosen(other), None, "{other}");
        }
    }
}
