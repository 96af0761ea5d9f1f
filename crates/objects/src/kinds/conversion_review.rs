//! Questions to a conversion hook, and the demands on its answers (apiextensions-apiserver
//! `pkg/apiserver/conversion/webhook_converter.go`).
//!
//! Labels and annotations are all that counts of the metadata in an answer; the rest is the original's.

use crate::causes::aggregate;
use crate::fields;
use crate::gotext;
use crate::kinds::behavior::rules::{metadata, selector};
use crate::kinds::prelude::*;
use crate::schema::names::{GroupVersion, Gvk};
use crate::tree::json;

mod answer;
const KIND: &str = "ConversionReview";

/// The versions of the review that are known, of which the first that a definition names is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    /// The version whose answers may lack the kind, and may have any uid.
    V1Beta1,
}

/// An answer that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub failure: Failure,
    /// Follows `conversion webhook for <kind> `, unless it is bare.
    pub why: String,
    pub is_bare: bool,
}

/// Faults of a hook's answer, as upstream's metrics tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There was no answer.
    Call,
    MalformedResponse,
    PartialResponse,
    InvalidConvertedObject,
}

impl Failure {
    /// The label `failure_type`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Call => "conversion_webhook_call_failure",
            Self::MalformedResponse => "conversion_webhook_malformed_response_failure",
            Self::PartialResponse => "conversion_webhook_partial_response_failure",
            Self::InvalidConvertedObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }

    pub fn because(self, why: String) -> Refused {
        Refused { failure: self, why, is_bare: false }
    }
}

/// Several objects of one version that are to be converted to another.
pub struct Review<'a> {
    pub version: ReviewVersion,
    pub uid: &'a str,
    pub desired: &'a GroupVersion,
    /// None of them is in the desired version.
    pub objects: &'a [ObjectMap],
}

impl ReviewVersion {
    /// The first of `conversionReviewVersions` that is known.
    pub fn first_of<'v>(versions: impl IntoIterator<Item = &'v str>) -> Option<Self> {
        versions.into_iter().find_map(|version| match version {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    const fn gvk(self) -> Gvk {
        match self {
            Self::V1 => Gvk::fixed("apiextensions.k8s.io/v1", KIND),
            Self::V1Beta1 => Gvk::fixed("apiextensions.k8s.io/v1beta1", KIND),
        }
    }
}

impl Review<'_> {
    /// The body of the call.
    pub fn request(&self) -> Value {
        json!({
            "kind": KIND,
            "apiVersion": self.version.gvk().api_version().as_str(),
            "request": {
                "uid": self.uid,
                "desiredAPIVersion": self.desired.api_version().as_str(),
                "objects": self.objects,
            },
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        })
    }

    /// The converted objects of an answer's body.
    pub fn read(&self, body: &[u8]) -> Result<Vec<ObjectMap>, Refused> {
        let answer = answer::read(self.version, body);
        self.converted(answer.map_err(|why| Failure::Call.because(format!("failed: {why}")))?)
    }

    fn converted(&self, answer: ObjectMap) -> Result<Vec<ObjectMap>, Refused> {
        let converted = self.response(answer);
        let converted =
            converted.map_err(|why| Failure::MalformedResponse.because(format!("failed: {why}")))?;
        if converted.len() != self.objects.len() {
            let why = format!("returned {} objects, expected {}", converted.len(), self.objects.len());
            return Err(Failure::PartialResponse.because(why));
        }
        let objects = self.objects.iter().zip(converted).enumerate();
        let object = |(index, (original, converted))| self.object(index, original, converted);
        objects.map(object).collect()
    }

    fn response(&self, mut answer: ObjectMap) -> Result<Vec<Value>, String> {
        if self.version == ReviewVersion::V1 {
            let (expected, found) =
                (self.version.gvk(), Gvk::of(&answer).map_err(|error| error.to_string())?);
            if found != expected {
                return Err(format!("expected webhook response of {expected}, got {}", shown(&found)));
            }
        }
        let Some(Value::Object(response)) = answer.get_mut("response") else {
            return Err("no response provided".to_owned());
        };
        let uid = fields::text(response, &["uid"]);
        if self.version == ReviewVersion::V1 && uid != self.uid {
            let (expected, found) = (gotext::quote(self.uid), gotext::quote(uid));
            return Err(format!("expected response.uid={expected}, got {found}"));
        }
        match (fields::text(response, &["result", "status"]), fields::text(response, &["result", "message"]))
        {
            ("Success", _) => {}
            (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
            (_, message) => return Err(message.to_owned()),
        }
        match response.get_mut("convertedObjects").map(Value::take) {
            Some(Value::Array(objects)) => Ok(objects),
            _ => Ok(Vec::new()),
        }
    }

    fn object(&self, index: usize, original: &ObjectMap, converted: Value) -> Result<ObjectMap, Refused> {
        let is_one = self.objects.len() == 1;
        let because = |why| Failure::InvalidConvertedObject.because(why);
        let failed = |why: String| {
            because(match is_one {
                true => format!("returned invalid object at index 0: {why}"),
                false => format!("returned invalid converted object at index {index}: {why}"),
            })
        };
        let mut object = answer::object(converted).map_err(|why| match is_one {
            true => Refused { is_bare: true, ..because(why) },
            false => failed(why),
        })?;
        let (from, to) = (kind_of(original), kind_of(&object));
        if to.group_version != *self.desired {
            let (expected, found) = (self.desired, shown_version(&to.group_version));
            return Err(failed(format!("invalid groupVersion (expected {expected}, received {found})")));
        }
        if from.kind != to.kind {
            return Err(failed(format!("invalid kind (expected {}, received {})", from.kind, to.kind)));
        }
        check_identity(original, &object).map_err(|why| match is_one {
            true => because(format!("returned invalid object: {why}")),
            false => failed(why),
        })?;
        restore_metadata(original, &mut object).map_err(|why| {
            because(match is_one {
                true => format!("returned invalid metadata: {why}"),
                false => format!("returned invalid metadata in object at index {index}: {why}"),
            })
        })?;
        Ok(object)
    }
}

fn kind_of(object: &ObjectMap) -> Gvk {
    Gvk::of(object).unwrap_or_default()
}

/// A group, a version and a kind, of which any may be missing, as Go prints them.
fn shown(gvk: &Gvk) -> String {
    format!("{}/{}, Kind={}", gvk.group(), gvk.version(), gvk.kind)
}

fn shown_version(version: &GroupVersion) -> String {
    if version.group().is_empty() { version.version().to_owned() } else { version.to_string() }
}

/// A conversion makes no other object of an object.
fn check_identity(original: &ObjectMap, converted: &ObjectMap) -> Result<(), String> {
    for (member, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let of = |object| fields::text(object, &["metadata", member]).to_owned();
        let (before, after) = (of(original), of(converted));
        if before != after {
            return Err(format!("must have the same {name}: {before} != {after}"));
        }
    }
    Ok(())
}

fn restore_metadata(original: &ObjectMap, converted: &mut ObjectMap) -> Result<(), String> {
    let answered = match converted.get_mut("metadata").map(Value::take) {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", gotext::go_type(&other)));
        }
    };
    let mut restored = fields::object(original, "metadata").cloned().unwrap_or_default();
    for member in ["labels", "annotations"] {
        match answered.get(member) {
            None | Some(Value::Null) => {
                restored.shift_remove(member);
            }
            Some(Value::Object(texts)) => {
                check_texts(member, fields::object(&restored, member), texts)?;
                restored.insert(member, texts.clone().into());
            }
            Some(other) => {
                let found = gotext::go_type(other);
                return Err(format!("invalid metadata.{member} of type {found} in converted object"));
            }
        }
    }
    converted.insert("metadata", restored.into());
    Ok(())
}

/// Labels and annotations that a hook has changed have to be valid.
fn check_texts(member: &str, before: Option<&Map>, after: &Map) -> Result<(), String> {
    for (key, value) in after {
        if !value.is_string() {
            let found = gotext::go_type(value);
            return Err(format!(
                "metadata.{member}[{key}] must be a string, but is {found} in converted object"
            ));
        }
    }
    if before.is_some_and(|before| before == after) || before.is_none() && after.is_empty() {
        return Ok(());
    }
    // Upstream's name of the path is one letter short.
    let path = member.strip_prefix("annotations").map_or(member, |_| "annotation");
    let object = json!({"metadata": {path: after.clone()}});
    let root = At::root(&object);
    let own = root.get("metadata");
    let mut errors = Errors::default();
    match member {
        "labels" => selector::labels(&own.get(path), &mut errors),
        _ => metadata::annotations(&own.get(path), &mut errors),
    }
    let causes = errors.into_causes().into_vec();
    if causes.is_empty() { Ok(()) } else { Err(aggregate(&causes)) }
}
