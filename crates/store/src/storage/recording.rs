//! A part of a store's history, which a file of SQLite is filled with: versions with their own revisions, times and writers.

use super::{ChangeKind, Moment, Writer};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// A version of an object.
#[derive(Clone, Debug)]
pub struct RecordedVersion {
    pub resource: GroupResource,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    pub revision: Revision,
    pub uid: String,
    /// The apiVersion in which `value` is encoded.
    pub stored_version: String,
    /// The object as it is stored; nothing for a deletion.
    pub value: Vec<u8>,
    /// `None` for a version that is older than the recording.
    pub change: Option<RecordedChange>,
}

/// The change that has made a version.
#[derive(Clone, Debug)]
pub struct RecordedChange {
    pub kind: ChangeKind,
    pub previous: Option<Revision>,
    pub committed_ms: i64,
    pub writer: Option<Writer>,
}

/// The first and the last state of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: Moment,
    pub until: Moment,
}
