//! Values as kube-apiserver writes them: a message in an envelope for most built-in kinds, JSON for custom resources,
//! definitions and APIServices.

mod definitions;

use rowplane_store::storage::transfer::StoredObject;

use crate::codec::at_rest;
use crate::codec::object::Draft;
use crate::codec::protobuf::{self, Envelope};
use crate::json::scan;
use crate::protowire::{BYTES, Error, Reader};
use crate::schema::builtin;
use crate::schema::names::Gvk;
use crate::tree::Value;

/// The field of every object that holds its metadata, and of the metadata that holds the uid.
const METADATA: i32 = 1;
const UID: i32 = 5;

/// Fills in what the store keeps beside a value that is not encrypted. Definitions get the version that rowplane reads.
/// A value that cannot be read stays as it is, as an object that cannot be read.
pub fn describe(object: &mut StoredObject) {
    if object.resource.group == "apiextensions.k8s.io"
        && let Some(definition) = definitions::in_newest_version(&object.value)
    {
        object.value = definition;
    }
    if object.value.starts_with(b"{") {
        // kube-apiserver ends JSON with a line end, which would get into lists and events.
        object.value.truncate(object.value.trim_ascii_end().len());
    }
    let Some((api_version, uid)) = of_message(&object.value).or_else(|| of_json(&object.value)) else {
        return;
    };
    (object.stored_version, object.uid) = (api_version, uid);
}

/// Built-in groups whose objects kube-apiserver stores as JSON.
const AS_JSON: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Makes a value of rowplane, which is not encrypted, what kube-apiserver would have written, and returns its kind. The
/// error says why there is no such value.
pub fn convert_for_kube_apiserver(object: &mut StoredObject) -> Result<Gvk, String> {
    let value = object.value.clone().into();
    let draft = Draft::parse(&object.namespace, &object.name, value);
    let stored = draft.into_object(object.revision);
    let mut map = stored.to_map().map_err(|error| error.to_string())?;
    if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
        metadata.shift_remove("resourceVersion");
    }
    let text = |name| map.get(name).and_then(Value::as_str).unwrap_or_default();
    let gvk = Gvk::parse(text("apiVersion"), text("kind")).map_err(|error| error.to_string())?;
    let kind = builtin::kind(&gvk).filter(|_| !AS_JSON.contains(&gvk.group().as_str()));
    object.value = match kind {
        Some(kind) => {
            let message = protobuf::encode(&kind, &map).map_err(|error| error.to_string())?;
            Envelope::wrap(&gvk, &message)
        }
        None => {
            let mut json = serde_json::to_vec(&map).map_err(|error| error.to_string())?;
            json.push(b'\n');
            json
        }
    };
    Ok(gvk)
}

fn of_message(value: &[u8]) -> Option<(String, String)> {
    let opened = at_rest::open(value).ok()?;
    let metadata = bytes_field(&opened.message, METADATA).ok()?;
    let uid = bytes_field(metadata, UID).ok()?;
    Some((opened.gvk.api_version().to_string(), std::str::from_utf8(uid).ok()?.to_owned()))
}

fn of_json(value: &[u8]) -> Option<(String, String)> {
    let text = |at, name| scan::raw_string(value, &scan::member(value, at, name)?);
    let metadata = scan::member(value, 0, "metadata")?;
    Some((text(0, "apiVersion")?.to_owned(), text(metadata.start, "uid").unwrap_or_default().to_owned()))
}

/// A field of bytes, of which the last one counts; empty if it is not there.
pub(crate) fn bytes_field(message: &[u8], number: i32) -> Result<&[u8], Error> {
    let (mut reader, mut found) = (Reader::new(message), &b""[..]);
    while let Some(tag) = reader.tag()? {
        if tag.number() == number && tag.wire() == BYTES {
            found = reader.bytes()?;
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(found)
}
