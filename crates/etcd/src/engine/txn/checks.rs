//! Checks of requests, before any state is looked at.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::KeySet;
use crate::engine::interval::Interval;
use crate::engine::range::Query;
use crate::engine::{Error, names};
use crate::wire::messages::{DeleteRangeRequest, PutRequest, RequestOp, RequestOpKind, TxnRequest};

/// The rows that the branches of a transaction may write.
#[derive(Default)]
pub struct Touched {
    /// Keys that are written one by one.
    pub keys: KeySet,
    /// The leases of puts.
    pub leases: BTreeSet<i64>,
    /// Whether anything may be written at all.
    pub writes: bool,
}

/// The writes of a branch, as far as the request tells.
#[derive(Default)]
struct Written {
    puts: KeySet,
    deletes: Vec<Interval>,
}

/// Checks a transaction of at most so many operations.
pub fn check(txn: &TxnRequest, most: usize) -> Result<(), Error> {
    let TxnRequest { compare, success, failure } = txn;
    let operations = compare.len().max(success.len()).max(failure.len());
    let left = most.checked_sub(operations).ok_or(Error::TooManyOperations)?;
    if compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Error::EmptyKey);
    }
    for operation in success.iter().chain(failure) {
        match &operation.request {
            None => return Err(Error::KeyNotFound),
            Some(RequestOpKind::Range(range)) => Query::new(range).map(|_| ())?,
            Some(RequestOpKind::Put(put)) => check_put(put)?,
            Some(RequestOpKind::DeleteRange(delete)) => delete_interval(delete).map(|_| ())?,
            Some(RequestOpKind::Txn(txn)) => check(txn, left)?,
        }
    }
    written(success)?;
    written(failure)?;
    Ok(())
}

fn check_put(put: &PutRequest) -> Result<(), Error> {
    match put {
        _ if put.key.is_empty() => Err(Error::EmptyKey),
        _ if put.ignore_value && !put.value.is_empty() => Err(Error::ValueProvided),
        _ if put.ignore_lease && put.lease != 0 => Err(Error::LeaseProvided),
        _ => names::checked_name(&put.key).map(|_| ()),
    }
}

pub fn delete_interval(delete: &DeleteRangeRequest) -> Result<Interval, Error> {
    if delete.key.is_empty() {
        return Err(Error::EmptyKey);
    }
    Ok(Interval::new(&delete.key, &delete.range_end))
}

/// The writes of a branch. Fails if one of its operations puts a key that another one writes as well; deletions may
/// overlap.
fn written(branch: &[RequestOp]) -> Result<Written, Error> {
    let mut all = Written::default();
    for operation in branch {
        let one = match &operation.request {
            Some(RequestOpKind::Put(put)) => {
                Written { puts: KeySet::from([put.key.clone()]), ..Written::default() }
            }
            Some(RequestOpKind::DeleteRange(delete)) => {
                Written { deletes: vec![delete_interval(delete)?], ..Written::default() }
            }
            Some(RequestOpKind::Txn(txn)) => {
                // Only one of the two branches is taken, so what they write may be the same.
                let (mut then, otherwise) = (written(&txn.success)?, written(&txn.failure)?);
                then.puts.extend(otherwise.puts);
                then.deletes.extend(otherwise.deletes);
                then
            }
            Some(RequestOpKind::Range(_)) | None => continue,
        };
        let is_deleted = |key: &Bytes, by: &Written| by.deletes.iter().any(|deleted| deleted.contains(key));
        if one.puts.iter().any(|key| all.puts.contains(key) || is_deleted(key, &all))
            || !one.deletes.is_empty() && all.puts.iter().any(|key| is_deleted(key, &one))
        {
            return Err(Error::DuplicateKey);
        }
        all.puts.extend(one.puts);
        all.deletes.extend(one.deletes);
    }
    Ok(all)
}

/// The rows that a transaction may write.
pub fn touched(txn: &TxnRequest) -> Touched {
    let mut touched = Touched::default();
    touch(txn, &mut touched);
    touched
}

fn touch(txn: &TxnRequest, touched: &mut Touched) {
    for operation in txn.success.iter().chain(&txn.failure) {
        match &operation.request {
            Some(RequestOpKind::Put(put)) => {
                touched.writes = true;
                touched.keys.insert(put.key.clone());
                if put.lease != 0 {
                    touched.leases.insert(put.lease);
                }
            }
            Some(RequestOpKind::DeleteRange(delete)) => {
                touched.writes = true;
                if delete.range_end.is_empty() {
                    touched.keys.insert(delete.key.clone());
                }
            }
            Some(RequestOpKind::Txn(txn)) => touch(txn, touched),
            Some(RequestOpKind::Range(_)) | None => {}
        }
    }
}

/// Whether all that a transaction reads may be from the state that this server has.
pub fn is_serializable(txn: &TxnRequest) -> bool {
    let mut operations = txn.success.iter().chain(&txn.failure);
    operations.all(|operation| match &operation.request {
        Some(RequestOpKind::Range(range)) => range.serializable,
        Some(RequestOpKind::Txn(txn)) => is_serializable(txn),
        Some(RequestOpKind::Put(_) | RequestOpKind::DeleteRange(_)) | None => false,
    })
}
