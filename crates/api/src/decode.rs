//! Bodies as objects of their kind. Checks the kind that a body claims, reports what strict decoding finds, and words the
//! errors.

pub mod breadth;
pub mod claims;
pub(crate) mod configuration;
pub(crate) mod patch;

use bytes::Bytes;

use crate::codec::media_type::MediaType;
use crate::codec::protobuf::{self, Envelope};
use crate::codec::{managed, yaml};
use crate::error::Error;
use crate::gotext;
use crate::json::{self, Node, Parsed};
use crate::options::strictness::{Strictness, conform, yaml_error};
use crate::request::Request;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::schema::resource::ResourceDefinition;
use crate::schema::types::Fit;
use crate::tree::Value;
use crate::{ObjectMap, Target, meta, metadata_mut};
use claims::{Misfit, claim};

/// How many bytes of a body error messages show.
const SUMMARY: usize = 30;

/// The error of upstream's Go type for custom resources, which has no protobuf form.
const NO_PROTOBUF: &str = "object *unstructured.Unstructured does not implement the protobuf marshalling interface and \
                           cannot be encoded to a protobuf message";

/// A body and its media type.
pub struct Encoded {
    pub media: MediaType,
    pub bytes: Bytes,
}

/// The object of a POST or PUT.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    /// A client's bytes.
    Encoded(&'a Encoded),
    /// An object made by the server itself, of the right kind and version if it names any, and [closed](managed).
    Object(&'a ObjectMap),
}

impl Body<'_> {
    /// The decoded object with its defaults.
    pub(crate) fn decode(self, request: &Request<'_>) -> Result<ObjectMap, Error> {
        let resource = request.target.resource;
        let mut decoded = match self {
            Body::Encoded(body) => object(&resource.definition, body, request.strictness())?,
            Body::Object(object) => claiming(&resource.definition.kind.gvk, object.clone()),
        };
        resource.default(&mut decoded)?;
        if let Some(record) = request.audit {
            record.requested(&decoded);
        }
        Ok(decoded)
    }

    /// The decoded Scale of a PUT of the subresource.
    pub(crate) fn decode_scale(self, request: &Request<'_>) -> Result<ObjectMap, Error> {
        let scale = match self {
            Body::Encoded(body) => typed_object(sent_kind(request)?, body, request.strictness())?,
            Body::Object(object) => object.clone(),
        };
        if let Some(record) = request.audit {
            record.requested(&scale);
        }
        Ok(scale)
    }
}

/// The kind of the objects that are sent to the request's subresource, or to a resource that is not stored.
pub(crate) fn sent_kind<'a>(request: &Request<'a>) -> Result<&'a Kind, Error> {
    let definition = &request.target.resource.definition;
    if request.subresource.is_empty() {
        return Ok(&definition.kind);
    }
    let subresource = definition.subresource(request.subresource);
    subresource.and_then(|subresource| subresource.kind.as_ref()).ok_or(Error::UnknownResource)
}

/// Checks that the object's name and namespace are those of the URL, and fills in a missing namespace.
pub(crate) fn check_place(target: Target<'_>, object: &mut ObjectMap) -> Result<(), Error> {
    let metadata = metadata_mut(object);
    meta::check_name(metadata, target.name)?;
    let namespaced = target.resource.definition.namespaced();
    meta::ensure_namespace(metadata, namespaced.then_some(target.namespace))
}

/// Decodes an object of the kind that the URL names, conforming to its type, [closed](managed). A missing kind or
/// apiVersion is filled in (docs/spec/wire.md, 2.6).
pub fn object(
    definition: &ResourceDefinition,
    body: &Encoded,
    strictness: Strictness<'_>,
) -> Result<ObjectMap, Error> {
    typed_object(&definition.kind, body, strictness)
}

/// The variant of [`object`] for the kinds of subresources.
pub fn typed_object(kind: &Kind, body: &Encoded, strictness: Strictness<'_>) -> Result<ObjectMap, Error> {
    match body.media {
        MediaType::Protobuf => protobuf_object(kind, &body.bytes),
        MediaType::Json | MediaType::Yaml => text_object(kind, body, strictness),
    }
}

/// Decodes the options of a DELETE: any JSON, or DeleteOptions in any API version.
pub fn options(body: &Encoded) -> Result<Value, Error> {
    match body.media {
        MediaType::Protobuf => delete_options(&body.bytes),
        MediaType::Json | MediaType::Yaml => {
            parse_text(body, json::parse).map(|parsed| parsed.value).map_err(Error::BadRequest)
        }
    }
}

/// Parses a body of YAML, or one of JSON with `parse`.
fn parse_text(
    body: &Encoded,
    parse: fn(&[u8]) -> Result<Parsed, serde_json::Error>,
) -> Result<Parsed, String> {
    if body.media == MediaType::Yaml {
        return yaml::read(&body.bytes)
            .map(|document| Parsed { value: document.value, repeated: !document.repeated.is_empty() });
    }
    parse(&body.bytes).map_err(|error| {
        let why = json::complaint(&body.bytes).unwrap_or_else(|| error.to_string());
        format!("couldn't get version/kind; json parse error: {why}")
    })
}

fn text_object(kind: &Kind, body: &Encoded, strictness: Strictness<'_>) -> Result<ObjectMap, Error> {
    let refuse = |why: String| mismatch(&kind.gvk, kind, &why);
    let (mut object, repeated) = claimed_object(kind, body, strictness)?;
    let mut conformed = conform(kind, &mut object);
    let settled = matches!(conformed, Ok(Fit { respelled: false, .. }));
    if !settled && let Some(spelled) = spelled(body) {
        (object, _) = claimed_object(kind, body, strictness)?;
        conformed = kind.conform_spelled(&spelled, &mut object);
    }
    let fit = conformed.map_err(refuse)?;
    if (fit.unknown || repeated) && strictness.is_asked() {
        strictness.judge(&problems(kind, body)).map_err(refuse)?;
    }
    Ok(object)
}

/// The parsed text of a JSON body, in which numbers keep their spelling.
fn spelled(body: &Encoded) -> Option<Node> {
    (body.media == MediaType::Json).then(|| Node::parse(&body.bytes).ok()).flatten()
}

/// Parses a body, checks its kind and apiVersion, and tells whether it has repeated members.
fn claimed_object(
    kind: &Kind,
    body: &Encoded,
    strictness: Strictness<'_>,
) -> Result<(ObjectMap, bool), Error> {
    let unrecognized = |why| unrecognized(kind, &body.bytes, why);
    let Parsed { mut value, repeated } = parse_text(body, managed::parse).map_err(&unrecognized)?;
    let merged =
        (repeated && body.media == MediaType::Json).then(|| json::merged(&body.bytes).ok()).flatten();
    let is_open = merged.is_some() || body.media == MediaType::Yaml;
    value = merged.unwrap_or(value);
    let mut object = match value {
        Value::Object(mut object) => {
            if is_open {
                managed::close(&mut object);
            }
            object
        }
        // Go's decoder treats null as an empty object.
        Value::Null if kind.go().is_some() => ObjectMap::new(),
        Value::Null => {
            return Err(unrecognized(
                claims::of_custom(&ObjectMap::new(), || "null".to_owned())
                    .expect_err("an object without members has no kind"),
            ));
        }
        other => return Err(unrecognized(claims::no_claims(&other))),
    };
    match body.media {
        MediaType::Yaml => breadth::check_all(&object)?,
        _ => breadth::check(&object, body.bytes.len())?,
    }
    if kind.go().is_none() {
        check_custom(kind, &object, body, strictness)?;
    } else {
        let claimed = claim(&mut object, &kind.gvk).map_err(&unrecognized)?;
        check_claims(kind, &claimed)?;
    }
    Ok((object, repeated))
}

/// Checks the kind and apiVersion of a custom object, which have to be there. Only upstream's lax decoder tells what else
/// it knows about an object without a kind.
fn check_custom(
    kind: &Kind,
    object: &ObjectMap,
    body: &Encoded,
    strictness: Strictness<'_>,
) -> Result<(), Error> {
    if kind.gvk.is_claimed_by(object) {
        return Ok(());
    }
    let text = || String::from_utf8_lossy(&body.bytes).into_owned();
    let refuse = |why: String| {
        let api_version = object.get("apiVersion").and_then(Value::as_str).filter(|text| !text.is_empty());
        let claimed = match api_version {
            Some(text) => Gvk::parse(text, &kind.gvk.kind).ok(),
            None => Some(kind.gvk.clone()),
        };
        match claimed.filter(|_| !strictness.is_asked() && why.starts_with(claims::NO_KIND)) {
            Some(claimed) => mismatch(&claimed, kind, &why),
            None => unrecognized(kind, &body.bytes, why),
        }
    };
    let claimed = claims::of_custom(object, text).map_err(refuse)?;
    if object.get("apiVersion").is_some_and(Value::is_null) {
        let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
        return Err(mismatch(&claimed, kind, why));
    }
    // Upstream decodes metadata before it compares the claims.
    let fit = conform(kind, &mut object.clone()).map_err(|why| mismatch(&claimed, kind, &why))?;
    if fit.unknown && strictness.is_asked() {
        let mut found = problems(kind, body);
        found.retain(|problem| problem.contains("\"metadata."));
        let cannot = |why: String| mismatch_of(&claimed, &claimed.kind, &why);
        strictness.judge(&found).map_err(cannot)?;
    }
    if claimed.group_version != kind.gvk.group_version {
        return Err(Error::BadRequest(claims::other_version(&kind.gvk, &claimed)));
    }
    claims::check_custom(&kind.gvk, &claimed, object)
}

/// The unknown and repeated fields of a body. This parses the body a second time.
fn problems(kind: &Kind, body: &Encoded) -> Vec<String> {
    if body.media == MediaType::Json {
        return Node::parse(&body.bytes).map_or(Vec::new(), |node| kind.problems(&node));
    }
    let Ok(yaml::Document { value, repeated }) = yaml::read(&body.bytes) else { return Vec::new() };
    // Upstream converts the document to JSON, whose maps are sorted.
    let unknown = kind.problems(&Node::sorted(&value));
    let repeated = (!repeated.is_empty()).then(|| yaml_error(&repeated));
    repeated.into_iter().chain(unknown).collect()
}

fn protobuf_object(kind: &Kind, body: &[u8]) -> Result<ObjectMap, Error> {
    let envelope = Envelope::parse(body).map_err(|why| unrecognized(kind, body, why.to_string()))?;
    let claimed = envelope.gvk_or(&kind.gvk).map_err(|why| unrecognized(kind, body, why.to_string()))?;
    check_claims(kind, &claimed)?;
    if kind.go().is_none() {
        return Err(mismatch(&claimed, kind, NO_PROTOBUF));
    }
    let members = protobuf::decode_closed(kind, envelope.raw)
        .map_err(|why| mismatch(&kind.gvk, kind, &why.to_string()))?;
    breadth::check(&members, body.len())?;
    Ok(with_claims(&kind.gvk, members))
}

fn delete_options(body: &[u8]) -> Result<Value, Error> {
    const KIND: &str = "DeleteOptions";
    let bad = |why: protobuf::Error| Error::BadRequest(why.to_string());
    let envelope = Envelope::parse(body).map_err(bad)?;
    if !envelope.kind.is_empty() && envelope.kind != KIND {
        return Err(Error::BadRequest(format!("decoded object cannot be converted to {KIND}")));
    }
    let gvk = Gvk::parse(&envelope.api_version, KIND).map_err(|why| bad(why.into()))?;
    let kind = builtin::kind(&gvk).ok_or_else(|| bad(protobuf::Error::UnknownKind(gvk.clone())))?;
    let members = protobuf::decode(&kind, envelope.raw).map_err(bad)?;
    Ok(Value::Object(with_claims(&gvk, members)))
}

/// The object with its kind and version. Without them nothing could tell of which type a stored object is.
fn claiming(gvk: &Gvk, object: ObjectMap) -> ObjectMap {
    if gvk.is_claimed_by(&object) { object } else { with_claims(gvk, object) }
}

fn with_claims(gvk: &Gvk, members: ObjectMap) -> ObjectMap {
    gvk.claims().into_iter().chain(members).collect()
}

/// Refuses an object of another kind or version than the URL names.
fn check_claims(expected: &Kind, claimed: &Gvk) -> Result<(), Error> {
    claims::check(expected, claimed).map_err(|misfit| match misfit {
        Misfit::Version(text) => Error::BadRequest(text),
        Misfit::Kind(why) | Misfit::Unknown(why) => mismatch(claimed, expected, &why),
    })
}

fn mismatch(claimed: &Gvk, expected: &Kind, why: &str) -> Error {
    mismatch_of(claimed, &expected.gvk.kind, why)
}

fn mismatch_of(claimed: &Gvk, expected: &str, why: &str) -> Error {
    let (kind, version) = (&claimed.kind, gotext::quote(claimed.version()));
    Error::BadRequest(format!("{kind} in version {version} cannot be handled as a {expected}: {why}"))
}

fn unrecognized(kind: &Kind, body: &[u8], why: String) -> Error {
    Error::BadRequest(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        kind.gvk.kind,
        summary(body)
    ))
}

fn summary(body: &[u8]) -> String {
    let start = &body[..body.len().min(SUMMARY)];
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let more = if body.len() > SUMMARY { " ..." } else { "" };
    if body.starts_with(b"{") {
        return format!("{}{more}", String::from_utf8_lossy(start));
    }
    let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}{more}")
}
