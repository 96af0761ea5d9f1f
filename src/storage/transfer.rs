//! A whole store on its way elsewhere: into a file, out of one, or into another database.
//!
//! What travels is the state at one revision, without its history. The store it arrives in has a clock far ahead of
//! that revision, and history before the clock counts as compacted: revisions never go back for anybody, and clients
//! list anew. Objects keep their resourceVersions.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;

use super::{OpenError, Revision, SAFETY_GAP, TokenKey};
use crate::schema::names::GroupResource;

/// Records written in one statement.
pub(super) const RECORDS_AT_ONCE: usize = 500;

/// The state of a store at one revision.
pub struct Export {
    pub revision: Revision,
    /// An error ends it, and what came before is then not the whole state.
    pub records: BoxStream<'static, Result<Record, Error>>,
}

/// A piece of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    TokenKey(TokenKey),
    Object(StoredObject),
}

/// A live object as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    pub resource: GroupResource,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    pub revision: Revision,
    pub uid: String,
    /// The apiVersion that `value` is encoded in.
    pub stored_version: String,
    pub value: Vec<u8>,
}

/// Objects by resource.
pub type Counts = BTreeMap<GroupResource, u64>;

/// Why a store could not be moved. The target is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] super::Error),
    /// A target has to be new: nothing in it may be lost or mixed with what arrives.
    #[error("the database is not empty: it stands at revision {0}; restore into a new one")]
    NotEmpty(Revision),
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    #[error("cannot read the backup: {0}")]
    Read(Arc<std::io::Error>),
    /// What was written is not what was read.
    #[error("{resource}: {read} objects were read and {written} written")]
    Counts { resource: GroupResource, read: u64, written: u64 },
}

/// Where the clock of a store stands that holds the state of `revision`: beyond whatever its source may have
/// acknowledged since.
pub(super) fn clock_after(revision: Revision) -> Revision {
    Revision(revision.0 + SAFETY_GAP)
}

/// Every object that was read has to have been written, and nothing else.
pub(super) fn compare(read: &Counts, written: &Counts) -> Result<(), Error> {
    let resources = read.keys().chain(written.keys());
    let count = |counts: &Counts, resource| counts.get(resource).copied().unwrap_or(0);
    for resource in resources {
        let (read, written) = (count(read, resource), count(written, resource));
        if read != written {
            return Err(Error::Counts { resource: resource.clone(), read, written });
        }
    }
    Ok(())
}
