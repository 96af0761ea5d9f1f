//! Conversion of events, whose versions differ in the names of fields (`pkg/apis/events/v1/conversion.go`).

use crate::fields::ObjectMap;
use crate::kinds::behavior::conversion::OtherVersion;
use crate::tree::Text;

/// The other version, seen from the core group.
pub const OF_CORE: OtherVersion =
    OtherVersion { api_version: "events.k8s.io/v1", convert_from: to_core, convert_to: from_core };

/// The other version, seen from `events.k8s.io`.
pub const OF_EVENTS: OtherVersion =
    OtherVersion { api_version: "v1", convert_from: from_core, convert_to: to_core };

/// Names of fields in the core group and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

pub fn from_core(object: ObjectMap) -> ObjectMap {
    renamed(object, NAMES)
}

pub fn to_core(object: ObjectMap) -> ObjectMap {
    renamed(object, NAMES.map(|(core, own)| (own, core)))
}

/// Renames the fields. A field with a name of the other version is unknown in this version, and is dropped.
fn renamed(object: ObjectMap, names: [(&str, &str); 7]) -> ObjectMap {
    let foreign = |key: &str| names.iter().any(|(_, to)| *to == key);
    let entries = object.into_iter().filter(|(key, _)| !foreign(key));
    let rename = |key: Text| match names.iter().find(|(from, _)| *from == key) {
        Some((_, to)) => (*to).into(),
        None => key,
    };
    entries.map(|(key, value)| (rename(key), value)).collect()
}
