//! Runs a transaction on a state, which is a value: what is written goes into a copy.

use bytes::Bytes;

use super::{Past, Plan, Stop, Write, compare, delete_interval};
use crate::engine::Error;
use crate::engine::interval::Interval;
use crate::engine::keys::{Keys, Kv};
use crate::engine::lags::Sequence;
use crate::engine::range::Query;
use crate::engine::state::State;
use crate::wire::messages::{
    DeleteRangeRequest, DeleteRangeResponse, KeyValue, PutRequest, PutResponse, RangeRequest, RangeResponse,
    RequestOp, RequestOpKind, ResponseHeader, ResponseOp, ResponseOpKind, TxnRequest, TxnResponse,
};

/// The place of a row that is not written yet.
const UNWRITTEN: Sequence = Sequence(u64::MAX);

/// The effect of a checked transaction in this state.
pub fn run(state: &State, past: &Past, txn: &TxnRequest) -> Result<Plan, Stop> {
    let base = state.revision();
    let mut running =
        Running { state, past, base, keys: state.keys.clone(), plan: Plan::default(), path: Vec::new() };
    running.decide(txn);
    let mut path = running.path.clone().into_iter();
    running.check(txn, &mut path)?;
    let mut path = std::mem::take(&mut running.path).into_iter();
    let mut answer = running.txn(txn, &mut path)?;
    answer.header = Some(running.header());
    running.plan.answer = answer;
    Ok(running.plan)
}

struct Running<'a> {
    state: &'a State,
    past: &'a Past,
    base: i64,
    /// The keys as the operations before have left them.
    keys: Keys,
    plan: Plan,
    /// For each transaction, the outer ones first, whether its compares hold. Of nested ones, those of the branch
    /// taken.
    path: Vec<bool>,
}

/// The rest of the path.
type Path<'p> = &'p mut std::vec::IntoIter<bool>;

fn branch<'t>(txn: &'t TxnRequest, path: Path<'_>) -> (bool, &'t [RequestOp]) {
    match path.next().unwrap_or_default() {
        true => (true, &txn.success),
        false => (false, &txn.failure),
    }
}

impl Running<'_> {
    /// Judges all compares on the state as it is.
    fn decide(&mut self, txn: &TxnRequest) {
        let mut succeeded = true;
        for one in &txn.compare {
            self.plan.reads.interval(self.state, &compare::interval(one));
            succeeded = compare::holds(self.state, one);
            if !succeeded {
                break;
            }
        }
        self.path.push(succeeded);
        for operation in if succeeded { &txn.success } else { &txn.failure } {
            if let Some(RequestOpKind::Txn(nested)) = &operation.request {
                self.decide(nested);
            }
        }
    }

    /// Looks whether everything on the path can be done, before anything is.
    fn check(&mut self, txn: &TxnRequest, path: Path<'_>) -> Result<(), Stop> {
        for operation in branch(txn, path).1 {
            match &operation.request {
                Some(RequestOpKind::Range(range)) => self.check_range(range)?,
                Some(RequestOpKind::Put(put)) => self.check_put(put)?,
                Some(RequestOpKind::Txn(nested)) => self.check(nested, path)?,
                Some(RequestOpKind::DeleteRange(_)) | None => {}
            }
        }
        Ok(())
    }

    fn check_range(&self, range: &RangeRequest) -> Result<(), Stop> {
        check_revision(self.state, range.revision)?;
        let interval = Interval::new(&range.key, &range.range_end);
        if self.is_newest(range.revision) || self.past_keys(range.revision, &interval).is_some() {
            return Ok(());
        }
        Err(Stop::Past(range.revision, interval))
    }

    fn check_put(&mut self, put: &PutRequest) -> Result<(), Stop> {
        if put.lease != 0 {
            let lease = self.state.leases.get(&put.lease).ok_or(Error::LeaseNotFound)?;
            self.plan.reads.leases.insert(put.lease, lease.sequence);
        }
        if (put.ignore_value || put.ignore_lease) && self.state.kv(&put.key).is_none() {
            return Err(Error::KeyNotFound.into());
        }
        Ok(())
    }

    fn is_newest(&self, revision: i64) -> bool {
        revision <= 0 || revision == self.base
    }

    fn past_keys(&self, revision: i64, interval: &Interval) -> Option<&Keys> {
        let mut past = self.past.iter();
        past.find(|(at, of, _)| *at == revision && of == interval).map(|(_, _, keys)| keys)
    }

    fn header(&self) -> ResponseHeader {
        let revision = self.base + i64::from(!self.plan.writes.is_empty());
        ResponseHeader { revision, ..ResponseHeader::default() }
    }

    fn txn(&mut self, txn: &TxnRequest, path: Path<'_>) -> Result<TxnResponse, Stop> {
        let (succeeded, operations) = branch(txn, path);
        let mut responses = Vec::with_capacity(operations.len());
        for operation in operations {
            let response = match &operation.request {
                Some(RequestOpKind::Range(range)) => ResponseOpKind::Range(self.range(range)?),
                Some(RequestOpKind::Put(put)) => ResponseOpKind::Put(self.put(put)),
                Some(RequestOpKind::DeleteRange(delete)) => ResponseOpKind::DeleteRange(self.delete(delete)?),
                Some(RequestOpKind::Txn(nested)) => {
                    let answer = self.txn(nested, path)?;
                    ResponseOpKind::Txn(TxnResponse { header: Some(self.header()), ..answer })
                }
                None => return Err(Error::KeyNotFound.into()),
            };
            responses.push(ResponseOp { response: Some(response) });
        }
        Ok(TxnResponse { header: None, succeeded, responses })
    }

    fn range(&mut self, range: &RangeRequest) -> Result<RangeResponse, Stop> {
        let query = Query::new(range)?;
        let mut answer = match self.is_newest(query.revision) {
            true => {
                self.plan.reads.interval(self.state, &query.interval);
                query.answer(&self.keys)
            }
            false => match self.past_keys(query.revision, &query.interval) {
                Some(keys) => query.answer(keys),
                None => return Err(Stop::Past(query.revision, query.interval)),
            },
        };
        answer.header = Some(self.header());
        Ok(answer)
    }

    fn put(&mut self, put: &PutRequest) -> PutResponse {
        let prev = self.keys.get(&put.key).cloned();
        let number = self.plan.writes.len() as u32;
        let revision = self.base + 1;
        let kv = Kv {
            key: put.key.clone(),
            sequence: UNWRITTEN,
            create_revision: prev.as_ref().map_or(revision, |prev| prev.create_revision),
            mod_revision: revision,
            version: prev.as_ref().map_or(1, |prev| prev.version + 1),
            lease: match &prev {
                Some(prev) if put.ignore_lease => prev.lease,
                _ => put.lease,
            },
            place: number,
            value: match &prev {
                Some(prev) if put.ignore_value => prev.value.clone(),
                _ => put.value.clone(),
            },
        };
        // A lease that the key keeps has to live on, too.
        if let Some(lease) = self.state.leases.get(&kv.lease) {
            self.plan.reads.leases.insert(kv.lease, lease.sequence);
        }
        let kv = std::sync::Arc::new(kv);
        self.keys.insert(kv.clone());
        let seen = prev.as_ref().map(|prev| prev.sequence);
        self.plan.writes.push(Write::Put { kv, seen });
        let prev_kv = prev.filter(|_| put.prev_kv).map(|prev| prev.message());
        PutResponse { header: Some(self.header()), prev_kv }
    }

    fn delete(&mut self, delete: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Stop> {
        let interval = delete_interval(delete)?;
        let gone: Vec<_> = self.keys.range(&interval).cloned().collect();
        // One key that is there is expected to be by its own deletion.
        if interval.as_key().is_none() || gone.is_empty() {
            self.plan.reads.interval(self.state, &interval);
        }
        for kv in &gone {
            self.keys.remove(&kv.key);
            let key: Bytes = kv.key.clone();
            self.plan.writes.push(Write::Delete { key, seen: kv.sequence });
        }
        let prev_kvs = gone.iter().filter(|_| delete.prev_kv).map(|kv| kv.message()).collect();
        Ok(DeleteRangeResponse { header: Some(self.header()), deleted: gone.len() as i64, prev_kvs })
    }
}

/// Fails for a revision whose state cannot be read.
pub fn check_revision(state: &State, revision: i64) -> Result<(), Error> {
    match revision {
        _ if revision > state.revision() => Err(Error::Future),
        _ if revision > 0 && revision < state.compacted => Err(Error::Compacted),
        _ => Ok(()),
    }
}

/// Writes other revisions where the answer has that of its own writes, and the one before.
pub fn move_revisions(answer: &mut TxnResponse, base: i64, revision: i64) {
    let moved = |number: &mut i64| {
        if *number > base {
            *number = revision;
        }
    };
    // An operation before the first write has told the revision before it.
    let header = |header: &mut Option<ResponseHeader>| {
        if let Some(header) = header {
            header.revision = if header.revision > base { revision } else { revision - 1 };
        }
    };
    let message = |kv: &mut KeyValue| {
        moved(&mut kv.mod_revision);
        moved(&mut kv.create_revision);
    };
    header(&mut answer.header);
    for ResponseOp { response } in &mut answer.responses {
        match response {
            Some(ResponseOpKind::Range(range)) => {
                header(&mut range.header);
                range.kvs.iter_mut().for_each(message);
            }
            Some(ResponseOpKind::Put(put)) => header(&mut put.header),
            Some(ResponseOpKind::DeleteRange(delete)) => header(&mut delete.header),
            Some(ResponseOpKind::Txn(nested)) => move_revisions(nested, base, revision),
            None => {}
        }
    }
}
