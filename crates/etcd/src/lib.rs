//! A Kubernetes cluster in etcd's terms: keys, revisions and values as kube-apiserver has written them, read out of the
//! files of etcd, the table of kine and the API of both (docs/spec/etcd.md, sections 6.3, 7 and 8); and that API itself, on
//! rowplane's store (`engine`).
//!
//! Nothing here is trusted: damaged and hostile files end in an error, with memory bounded by the file's size.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

mod bolt;
pub mod engine;
pub mod export;
pub mod keys;
pub mod kine;
pub mod live;
pub mod releases;
pub mod snapshot;
pub mod values;
pub mod wire;

use std::io;

use rowplane_objects::{codec, kinds, protowire, schema};
use rowplane_store::encryption;
use rowplane_store::storage::transfer;
use rowplane_values::{json, tree};

/// The newest version of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Vec<u8>,
    /// The revision of the transaction that wrote the value.
    pub mod_revision: u64,
    pub value: Vec<u8>,
}

/// Why a cluster could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file is something else, or was not written to its end.
    #[error("is no database of etcd: {0}")]
    Format(&'static str),
    #[error("is damaged: {0}")]
    Damaged(String),
    #[error("has no table of kine that can be read: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("cannot be read: {0}")]
    Database(#[from] transfer::Error),
    #[error("cannot be called: {0}")]
    Call(String),
    /// The source keeps its history for less time than it takes to read it.
    #[error("has compacted revisions that have not been read yet; begin again")]
    Compacted,
}
