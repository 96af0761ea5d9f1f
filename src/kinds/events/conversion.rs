//! Events differ in the names of their fields (`pkg/apis/events/v1/conversion.go`).

use crate::fields::ObjectMap;
use crate::kinds::behavior::conversion::OtherVersion;
use crate::tree::Text;

/// The other version of core's events.
pub const OF_CORE: OtherVersion =
    OtherVersion { api_version: "events.k8s.io/v1", convert_from: to_core, convert_to: from_core };

/// The other version of this group's events.
pub const OF_EVENTS: OtherVersion =
    OtherVersion { api_version: "v1", convert_from: from_core, convert_to: to_core };

/// In the core group, in `events.k8s.io`.
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

/// A field with a name of the other version is none of this version, so it does not get across.
fn renamed(object: ObjectMap, names: [(&str, &str); 7]) -> ObjectMap {
    let foreign = |key: &str| names.iter().any(|(_, to)| *to == key);
    let entries = object.into_iter().filter(|(key, _)| !foreign(key));
    let rename = |key: Text| match names.iter().find(|(from, _)| *from == key) {
        Some((_, to)) => (*to).into(),
        None => key,
    };
    entries.map(|(key, value)| (rename(key), value)).collect()
}
