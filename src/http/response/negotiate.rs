//! Media types: those that the client accepts, and those that it sends.

mod accept;
mod content;
pub mod page;

use crate::api::error::{Error, Refuser};
use crate::codec::media_type::MediaType;

use accept::{Clause, clauses};

pub use content::{PatchTarget, body_type, patch_kind};

/// Another form in which an object can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    Table(MetaVersion),
    PartialObjectMetadata(MetaVersion),
    PartialObjectMetadataList(MetaVersion),
    /// Aggregated discovery, v2.
    ApiGroupDiscoveryList,
}

/// The version of `meta.k8s.io` in which a transformed object is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Whether the requested object is a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Single,
    List,
}

/// A media type of an endpoint, with the forms in which it is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub media: MediaType,
    /// Whether the object is available without a transform.
    pub plain: bool,
    pub metadata: bool,
    pub table: bool,
    pub discovery: bool,
}

impl Offer {
    /// The offer of untransformed objects alone: for errors and legacy discovery.
    pub const fn plain(media: MediaType) -> Self {
        Self { media, plain: true, metadata: false, table: false, discovery: false }
    }

    /// The offer for GET, LIST, WATCH and writes of a resource.
    pub const fn resource(media: MediaType) -> Self {
        let table = !matches!(media, MediaType::Protobuf);
        Self { metadata: true, table, ..Self::plain(media) }
    }

    /// The offer for `/api` and `/apis`.
    pub const fn discovery(media: MediaType) -> Self {
        Self { discovery: true, ..Self::plain(media) }
    }

    fn allows(&self, transform: Option<Transform>) -> bool {
        match transform {
            None => self.plain,
            Some(Transform::Table(_)) => self.table,
            Some(Transform::PartialObjectMetadata(_) | Transform::PartialObjectMetadataList(_)) => {
                self.metadata
            }
            Some(Transform::ApiGroupDiscoveryList) => self.discovery,
        }
    }
}

/// The media types of resources.
pub const RESOURCE: &[Offer] = &[
    Offer::resource(MediaType::Json),
    Offer::resource(MediaType::Yaml),
    Offer::resource(MediaType::Protobuf),
];
/// The variant of [`RESOURCE`] for resources whose storage makes no Tables upstream.
pub const WITHOUT_TABLE: &[Offer] = &[
    Offer { table: false, ..Offer::resource(MediaType::Json) },
    Offer { table: false, ..Offer::resource(MediaType::Yaml) },
    Offer::resource(MediaType::Protobuf),
];
/// Custom resources, of which only metadata has a protobuf form.
pub const CUSTOM: &[Offer] = &[
    Offer::resource(MediaType::Json),
    Offer::resource(MediaType::Yaml),
    Offer { plain: false, ..Offer::resource(MediaType::Protobuf) },
];
pub const PLAIN: &[Offer] =
    &[Offer::plain(MediaType::Json), Offer::plain(MediaType::Yaml), Offer::plain(MediaType::Protobuf)];
pub const DISCOVERY: &[Offer] = &[
    Offer::discovery(MediaType::Json),
    Offer::discovery(MediaType::Yaml),
    Offer::discovery(MediaType::Protobuf),
];

/// The types that the router in front of built-in kinds accepts, see [`check_route`].
pub const ROUTE_TYPES: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
pub const WATCH_ROUTE_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// The chosen form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    pub media: MediaType,
    pub transform: Option<Transform>,
    /// Whether `;pretty=1` was requested; see also [`wants_pretty`]. Never set for watch events.
    pub pretty: bool,
}

/// Chooses the form of an answer. `accept` is the first Accept header; 406 if nothing fits.
pub fn negotiate(accept: Option<&str>, offers: &[Offer]) -> Result<Negotiated, Error> {
    select(accept, offers).ok_or_else(|| {
        let types: Vec<&str> = offers.iter().map(|offer| offer.media.as_str()).collect();
        only(&types.join(", "))
    })
}

/// Chooses the form of a watch. If the preferred type cannot be streamed, the request fails even if it also accepts one
/// that can.
pub fn negotiate_stream(accept: Option<&str>, offers: &[Offer]) -> Result<Negotiated, Error> {
    let chosen = negotiate(accept, offers)?;
    if chosen.media.stream_content_type().is_some() {
        return Ok(chosen);
    }
    let streaming = offers.iter().filter(|offer| offer.media.stream_content_type().is_some());
    let types: Vec<String> =
        streaming.map(|offer| format!("{};stream=watch", offer.media.as_str())).collect();
    Err(only(&types.join(", ")))
}

/// The entry of `names`, by subtype of `application`, that the client prefers. Parameters are ignored.
pub fn preferred<T: Copy>(accept: &str, names: &[(&str, T)]) -> Option<T> {
    let matching = |clause: &Clause<'_>| {
        names.iter().find(|(subtype, _)| clause.matches("application", subtype)).map(|(_, what)| *what)
    };
    clauses(accept).iter().find_map(matching)
}

/// Whether a header contains no media range.
pub fn names_nothing(accept: &str) -> bool {
    clauses(accept).is_empty()
}

/// Upstream's router checks Accept before any handler of a built-in kind does: without its parameters, one range must
/// equal a type or be `*/*`; it does not know `application/*`. `types` are in the order of the 406's text.
pub fn check_route(accept: Option<&str>, types: &[&str]) -> Result<(), Error> {
    let Some(accept) = accept.filter(|accept| !accept.is_empty()) else { return Ok(()) };
    let ranges = || accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
    let bare = |name: &str| name.split(';').next().unwrap_or_default().to_owned();
    if ranges().any(|range| range == "*/*" || types.iter().any(|name| bare(name) == range)) {
        return Ok(());
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {}", types.join(", "));
    Err(Error::NotAcceptable { message, by: Refuser::Router })
}

/// Whether the answer should be indented: by the query parameter `pretty`, otherwise for well-known User-Agents
/// (apiserver `isPrettyPrint`).
pub fn wants_pretty(query: Option<&str>, user_agent: Option<&str>) -> bool {
    match query.filter(|value| !value.is_empty()) {
        Some(value) => crate::gotext::parse_bool(value) == Some(true),
        None => {
            let agents = ["curl", "Wget", "Mozilla/5.0"];
            user_agent.is_some_and(|agent| agents.iter().any(|known| agent.starts_with(known)))
        }
    }
}

impl Negotiated {
    /// 406 if the transform does not fit the shape of the object; `what` names the object's type.
    pub fn check_shape(&self, shape: Shape, what: impl FnOnce() -> String) -> Result<(), Error> {
        let (asked, is) = match (self.transform, shape) {
            (Some(Transform::PartialObjectMetadata(_)), Shape::List) => ("PartialObjectMetadata", "a list"),
            (Some(Transform::PartialObjectMetadataList(_)), Shape::Single) => {
                ("PartialObjectMetadataList", "not a list")
            }
            _ => return Ok(()),
        };
        let message = format!("you requested {asked}, but the requested object is {is} ({})", what());
        Err(Error::NotAcceptable { message, by: Refuser::Handler })
    }
}

fn select(accept: Option<&str>, offers: &[Offer]) -> Option<Negotiated> {
    let Some(accept) = accept.filter(|accept| !accept.is_empty()) else {
        let media = offers.first()?.media;
        return Some(Negotiated { media, transform: None, pretty: false });
    };
    let clauses = clauses(accept);
    clauses.iter().find_map(|clause| offers.iter().find_map(|offer| accepted(clause, offer)))
}

fn accepted(clause: &Clause<'_>, offer: &Offer) -> Option<Negotiated> {
    if !clause.matches("application", offer.media.subtype()) {
        return None;
    }
    let transform = transform(clause)?;
    let stream = match clause.param("stream").unwrap_or_default() {
        "" => true,
        "watch" => offer.media.stream_content_type().is_some(),
        _ => false,
    };
    let server_version = match clause.param("sv").unwrap_or_default() {
        "" => true,
        "v1" => offer.metadata || offer.table,
        _ => false,
    };
    let pretty = clause.param("pretty") == Some("1");
    let fits = stream && server_version && offer.allows(transform);
    fits.then_some(Negotiated { media: offer.media, transform, pretty })
}

/// The transform of a clause; the outer `None` means an unknown transform.
fn transform(clause: &Clause<'_>) -> Option<Option<Transform>> {
    let names = ["g", "v", "as"].map(|name| clause.param(name));
    if names.iter().all(Option::is_none) {
        return Some(None);
    }
    let [group, version, kind] = names.map(Option::unwrap_or_default);
    if (group, version, kind) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") {
        return Some(Some(Transform::ApiGroupDiscoveryList));
    }
    let version = match (group, version) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
        _ => return None,
    };
    Some(Some(match kind {
        "Table" => Transform::Table(version),
        "PartialObjectMetadata" => Transform::PartialObjectMetadata(version),
        "PartialObjectMetadataList" => Transform::PartialObjectMetadataList(version),
        _ => return None,
    }))
}

fn only(types: &str) -> Error {
    let message = format!("only the following media types are accepted: {types}");
    Error::NotAcceptable { message, by: Refuser::Handler }
}

#[cfg(test)]
mod tests;
