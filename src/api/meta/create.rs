//! Metadata of an object about to be created.

use super::{Metadata, text, validate_common};
use crate::api::error::Error;
use crate::causes::Cause;
use crate::causes::Causes;
use crate::gotext;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::object_meta;
use crate::schema::resource::Scope;

/// What the server gives to each new object.
#[derive(Clone, Debug)]
pub struct Stamp<'a> {
    pub uid: &'a str,
    /// RFC 3339, UTC, whole seconds.
    pub now: &'a str,
}

/// Drops what clients may not set, before anybody comes to own it (apiserver `WipeObjectMetaSystemFields`).
pub fn wipe(metadata: &mut Metadata) {
    for field in ["uid", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.shift_remove(field);
    }
}

/// 500 for a new object that names a version; what is no number but 0 counts as none. Upstream's store says so last of
/// all, and a dry run does not ask it.
pub fn refuse_version(version: &str) -> Result<(), Error> {
    if gotext::parse_uint(version).is_ok_and(|version| version != 0) {
        let text = "resourceVersion should not be set on objects to be created";
        return Err(Error::Unclassified(text.to_owned()));
    }
    Ok(())
}

/// Replaces or drops what only the server says.
pub fn prepare(metadata: &mut Metadata, stamp: &Stamp<'_>) {
    for field in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.shift_remove(field);
    }
    metadata.insert("uid", stamp.uid.into());
    metadata.insert("creationTimestamp", stamp.now.into());
}

/// Does the server have to find a name?
pub fn wants_generated_name(metadata: &Metadata) -> bool {
    text(metadata, "name").is_empty() && !text(metadata, "generateName").is_empty()
}

/// Causes of a 422, once the name is generated and the namespace filled in.
pub fn validate(metadata: &Metadata, scope: Scope, names: NameFormat) -> Causes {
    let mut causes = Causes::default();
    object_meta::names(metadata, names, &mut causes);
    if text(metadata, "name").is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    }
    validate_common(metadata, scope, &mut causes);
    causes
}
