//! Writes: evaluated on the newest state, committed if that state is still true, evaluated anew if it is not.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use rowplane_store::storage::{Counting, Expect, Mutation, UnchangedRange, Written};

use super::lags::Sequence;
use super::locks::Name;
use super::rows::{Stored, StoredKey, as_seen, delete, expect};
use super::state::State;
use super::txn::{self, Past, Plan, Reads, Stop, Write};
use super::{Error, Etcd, names, notes};
use crate::wire::messages::{
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RequestOp, RequestOpKind,
    ResponseOpKind, TxnRequest, TxnResponse,
};

/// A write that has lost so often is done while no other one of this server is.
const PATIENCE: usize = 3;

/// The fate of a unit.
enum Outcome {
    /// It is in the state now. Its last row has this place.
    Committed(Sequence),
    /// Something that it rests on was not true any more. The state has what came in between.
    Lost,
}

/// The write of a note. It fails if the note is not as it was seen.
#[derive(Clone, Debug)]
pub struct NoteWrite {
    pub name: Arc<str>,
    /// The place of the note, if there is one.
    pub seen: Option<Sequence>,
    /// `None` deletes the note.
    pub value: Option<Bytes>,
}

impl Etcd {
    pub async fn put(&self, request: PutRequest) -> Result<PutResponse, Error> {
        let TxnResponse { header, mut responses, .. } = self.one(RequestOpKind::Put(request)).await?;
        match responses.pop().and_then(|response| response.response) {
            Some(ResponseOpKind::Put(put)) => Ok(PutResponse { header, ..put }),
            _ => Err(Error::Corrupt("a put has another answer".into())),
        }
    }

    pub async fn delete_range(&self, request: DeleteRangeRequest) -> Result<DeleteRangeResponse, Error> {
        let TxnResponse { header, mut responses, .. } = self.one(RequestOpKind::DeleteRange(request)).await?;
        match responses.pop().and_then(|response| response.response) {
            Some(ResponseOpKind::DeleteRange(deleted)) => Ok(DeleteRangeResponse { header, ..deleted }),
            _ => Err(Error::Corrupt("a deletion has another answer".into())),
        }
    }

    async fn one(&self, operation: RequestOpKind) -> Result<TxnResponse, Error> {
        let success = vec![RequestOp { request: Some(operation) }];
        let txn = TxnRequest { success, ..TxnRequest::default() };
        txn::check(&txn, 1)?;
        self.evaluate(&txn).await
    }

    pub async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Error> {
        txn::check(&request, self.shared.config.max_txn_ops)?;
        self.evaluate(&request).await
    }

    async fn evaluate(&self, request: &TxnRequest) -> Result<TxnResponse, Error> {
        let touched = txn::touched(request);
        if !touched.writes {
            return self.read(request).await;
        }
        let alone = touched.keys.into_iter().map(Name::Key).collect();
        let _turn =
            self.shared.locks.take(alone, touched.leases.into_iter().map(Name::Lease).collect()).await;
        let mut past = Past::new();
        // A plan that writes is judged by the store. Any other rests on this server's state, which may be behind.
        let mut state = self.state();
        let mut is_newest = !self.backend().shared();
        let mut lost = 0;
        loop {
            let alone = match lost {
                0..PATIENCE => None,
                _ => Some(self.shared.gate.write().await),
            };
            let _among_others = match &alone {
                None => Some(self.shared.gate.read().await),
                Some(_) => None,
            };
            if lost > 0 {
                state = self.state();
            }
            let plan = txn::run(&state, &past, request);
            match plan {
                Err(Stop::Past(revision, interval)) => {
                    let keys = self.keys_at(&state, revision, &interval).await?;
                    past.push((revision, interval, keys));
                    continue;
                }
                Err(Stop::Refused(_)) if !is_newest => {}
                Err(Stop::Refused(error)) => return Err(error),
                Ok(plan) if plan.writes.is_empty() && !is_newest => {}
                Ok(plan) if plan.writes.is_empty() => return Ok(self.with_header(plan, &state)),
                Ok(plan) => {
                    let unit = self.unit(&state, &plan.writes, &plan.reads)?;
                    match self.commit(unit).await? {
                        Outcome::Committed(sequence) => return Ok(self.settled(plan, &state, sequence)),
                        Outcome::Lost => {
                            lost += 1;
                            is_newest = !self.backend().shared();
                            continue;
                        }
                    }
                }
            }
            state = self.newest().await?;
            is_newest = true;
        }
    }

    /// Answers a transaction that has no writes.
    async fn read(&self, request: &TxnRequest) -> Result<TxnResponse, Error> {
        let state = if txn::is_serializable(request) { self.state() } else { self.newest().await? };
        let mut past = Past::new();
        loop {
            match txn::run(&state, &past, request) {
                Ok(plan) => return Ok(self.with_header(plan, &state)),
                Err(Stop::Refused(error)) => return Err(error),
                Err(Stop::Past(revision, interval)) => {
                    let keys = self.keys_at(&state, revision, &interval).await?;
                    past.push((revision, interval, keys));
                }
            }
        }
    }

    fn with_header(&self, plan: Plan, state: &State) -> TxnResponse {
        TxnResponse { header: Some(self.header(state.revision())), ..plan.answer }
    }

    fn settled(&self, plan: Plan, seen: &State, sequence: Sequence) -> TxnResponse {
        let base = seen.revision();
        // The place is newer than what the state forgets first.
        let revision = self.state().lags.revision(sequence).unwrap_or(base + 1);
        TxnResponse { header: Some(self.header(revision)), ..plan.settle(base, revision) }
    }

    /// The unit of a transaction that was evaluated on a state.
    fn unit(&self, state: &State, writes: &[Write], reads: &Reads) -> Result<Vec<Mutation>, Error> {
        let tables = &self.shared.tables;
        let mut unit: Vec<Mutation> = writes
            .iter()
            .map(|write| match write {
                Write::Put { kv, seen } => {
                    let row = StoredKey {
                        create_revision: if seen.is_some() { kv.create_revision } else { 0 },
                        version: kv.version,
                        lease: kv.lease,
                        place: kv.place,
                        value: kv.value.clone(),
                    };
                    Stored::Key(row).put(tables.key(&kv.key), expect(*seen), Counting::Shared)
                }
                Write::Delete { key, seen } => delete(tables.key(key), *seen, Counting::Shared),
            })
            .collect();
        if let Some(last) = unit.last_mut() {
            last.counting = Counting::Own;
        }
        let is_written = |key: &Bytes| {
            writes.iter().any(|write| match write {
                Write::Put { kv, .. } => kv.key == key,
                Write::Delete { key: deleted, .. } => deleted == key,
            })
        };
        // What was read is judged before the first write.
        if let Some(first) = unit.first_mut() {
            let keys = reads.keys.iter().filter(|(key, _)| !is_written(key));
            first.requires.extend(keys.map(|(key, seen)| as_seen(tables.key(key), *seen)));
            let leases = reads.leases.iter();
            first.requires.extend(leases.map(|(id, seen)| as_seen(tables.lease(*id), Some(*seen))));
            first.unchanged.extend(reads.ranges.iter().map(|interval| {
                let (start, stop) = interval.edges();
                UnchangedRange {
                    resource: tables.keys,
                    start: names::name(&start).into(),
                    stop: stop.map(|stop| names::name(&stop).into()),
                    since: state.sequence,
                }
            }));
        }
        Ok(unit)
    }

    /// Commits a unit, whose mutations pass together or not at all.
    async fn commit(&self, mut unit: Vec<Mutation>) -> Result<Outcome, Error> {
        let Some(last) = unit.pop() else { return Ok(Outcome::Lost) };
        match self.shared.store.write_joined(unit, last).await? {
            Written::Committed { revision, .. } => Ok(Outcome::Committed(revision)),
            Written::Conflict { judged_at, .. } | Written::Unmet { judged_at } => {
                self.reach(judged_at).await?;
                Ok(Outcome::Lost)
            }
        }
    }

    /// Commits a unit that takes no revision, or one if its last mutation says so. Returns its place; `None` if it
    /// has lost.
    pub(super) async fn commit_rows(&self, unit: Vec<Mutation>) -> Result<Option<Sequence>, Error> {
        Ok(match self.commit(unit).await? {
            Outcome::Committed(sequence) => Some(sequence),
            Outcome::Lost => None,
        })
    }

    /// The notes whose names begin with a prefix, in the newest state that any server has answered from.
    pub async fn notes(&self, prefix: &str) -> Result<Vec<(Arc<str>, notes::Note)>, Error> {
        Ok(self.known_notes_of(&*self.newest().await?, prefix))
    }

    /// The notes whose names begin with a prefix, as far as this server knows.
    pub fn known_notes(&self, prefix: &str) -> Vec<(Arc<str>, notes::Note)> {
        self.known_notes_of(&self.state(), prefix)
    }

    fn known_notes_of(&self, state: &State, prefix: &str) -> Vec<(Arc<str>, notes::Note)> {
        let from = state.notes.range::<_, str>((Bound::Included(prefix), Bound::Unbounded));
        let found = from.take_while(|(name, _)| name.starts_with(prefix));
        found.map(|(name, note)| (name.clone(), note.clone())).collect()
    }

    /// Writes notes, all of them or none. They take no revision. Returns whether all were as they had been seen.
    pub async fn write_notes(&self, writes: Vec<NoteWrite>) -> Result<bool, Error> {
        let mut unit = Vec::with_capacity(writes.len());
        for NoteWrite { name, seen, value } in writes {
            let key = self.shared.tables.note(&name);
            unit.push(match (value, seen) {
                (Some(value), seen) => Stored::Note(value).put(key, expect(seen), Counting::None),
                (None, Some(seen)) => delete(key, seen, Counting::None),
                (None, None) => continue,
            });
        }
        if unit.is_empty() {
            return Ok(true);
        }
        Ok(self.commit_rows(unit).await?.is_some())
    }

    /// Gives the cluster its number, unless it has one.
    pub(super) async fn name_cluster(&self) -> Result<(), Error> {
        if self.state().notes.contains_key(notes::CLUSTER) {
            return Ok(());
        }
        let number = (self.shared.runtime.random.uuid().as_u128() as u64).max(1);
        let row = Stored::Note(notes::of_number(number));
        // Another server may be quicker, and then its number counts.
        let key = self.shared.tables.note(notes::CLUSTER);
        self.commit_rows(vec![row.put(key, Expect::Absent, Counting::None)]).await?;
        Ok(())
    }

    /// Notes that clients have to look again at what they know of revisions.
    pub(super) async fn raise_term(&self) {
        let state = self.state();
        let note = state.notes.get(notes::TERM);
        let term = note.and_then(|note| notes::number(&note.value)).unwrap_or_default();
        let (seen, key) = (note.map(|note| note.sequence), self.shared.tables.note(notes::TERM));
        let row = Stored::Note(notes::of_number(term + 1)).put(key, expect(seen), Counting::None);
        // If another server has raised it meanwhile, that is enough.
        if let Err(error) = self.commit_rows(vec![row]).await {
            tracing::warn!(%error, "the term could not be raised");
        }
    }
}
