//! Random transactions of several clients, judged by a model of etcd that is as simple as can be: they are repeated
//! one by one in the order of their revisions, and each must have had the answer that the model gives.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::join_all;
use rowplane_etcd::wire::messages::{
    Compare, CompareResult, DeleteRangeResponse, Event, EventType, KeyValue, PutResponse, RangeRequest,
    RangeResponse, RequestOp, RequestOpKind, ResponseHeader, ResponseOp, ResponseOpKind, TargetUnion,
    TxnRequest, TxnResponse, WatchCreateRequest,
};

use crate::support::{
    Database, Server, bytes, compare, op, op_delete, op_put, op_range, op_txn, put, txn, watched,
};

const CLIENTS: usize = 6;
const TXNS: usize = 60;

pub async fn random_transactions_are_those_of_etcd(database: &Database) {
    run(&[database.server().await], 1).await;
}

pub async fn a35_watches_keep_their_promises(database: &Database) {
    run(&[database.server().await], 2).await;
}

/// Runs random transactions on all servers and judges their answers, and what watches are told.
pub async fn run(servers: &[Server], seed: u64) {
    let watching = servers.iter().enumerate().map(|(number, server)| watch_all(server, number as u64 + seed));
    let watching = join_all(watching);
    let clients = (0..CLIENTS).map(|client| {
        let server = &servers[client % servers.len()];
        async move {
            let mut random = Random(seed * 1000 + client as u64);
            let mut done = Vec::new();
            for _ in 0..TXNS {
                let request = random.txn(2);
                // Whatever was drawn twice is refused, and no part of the history.
                if let Ok(answer) = server.etcd.txn(request.clone()).await {
                    done.push((request, answer));
                }
            }
            done
        }
    });
    let work = async {
        let done = join_all(clients).await.concat();
        servers[0].put("end", "").await;
        done
    };
    let (told, done) = futures_util::future::join(watching, work).await;
    let history = judge(done);
    for told in told {
        for (request, answers) in told {
            check_watch(&history, &request, &answers);
        }
    }
}

/// The events of each revision.
type History = BTreeMap<i64, Vec<Event>>;

/// Repeats transactions in their order. Those that wrote nothing have the revision of the state that they saw.
fn judge(mut done: Vec<(TxnRequest, TxnResponse)>) -> History {
    let revision = |answer: &TxnResponse| answer.header.as_ref().expect("a header").revision;
    let mut states = BTreeMap::from([(1, Model { revision: 1, ..Model::default() })]);
    let mut history = History::new();
    done.sort_by_key(|(_, answer)| revision(answer));
    let mut readers = Vec::new();
    for (request, answer) in done {
        let at = revision(&answer);
        let newest = states.last_key_value().map(|(_, state)| state.clone()).expect("a state");
        // Only one of those with the revision has made it; which one, the model tells.
        let mut model = newest.clone();
        let expected = model.txn(&request);
        if at == newest.revision + 1 && model.revision == at && expected == plain(answer.clone()) {
            history.insert(at, std::mem::take(&mut model.events));
            states.insert(at, model);
        } else {
            readers.push((request, answer));
        }
    }
    assert_eq!(history.len() + 1, states.len());
    for (request, answer) in readers {
        let at = revision(&answer);
        let mut model =
            states.get(&at).unwrap_or_else(|| panic!("nothing made revision {at}: {request:?}")).clone();
        assert_eq!(plain(answer), model.txn(&request), "{request:?}");
        assert_eq!(model.revision, at, "a writer made no revision: {request:?}");
    }
    assert!(history.len() > 50, "{}", history.len());
    history
}

/// An answer without what a model cannot know.
fn plain(mut answer: TxnResponse) -> TxnResponse {
    if let Some(header) = &mut answer.header {
        *header = ResponseHeader { revision: header.revision, ..ResponseHeader::default() };
    }
    answer
}

#[derive(Clone, Default)]
struct Model {
    revision: i64,
    keys: BTreeMap<Bytes, KeyValue>,
    /// The events of the transaction that runs.
    events: Vec<Event>,
}

impl Model {
    fn txn(&mut self, request: &TxnRequest) -> TxnResponse {
        self.events.clear();
        let before = self.clone();
        let mut answer = self.branch(&before, request);
        if !self.events.is_empty() {
            self.revision += 1;
        }
        answer.header = header(self.revision);
        answer
    }

    fn branch(&mut self, before: &Self, request: &TxnRequest) -> TxnResponse {
        let succeeded = request.compare.iter().all(|compare| before.holds(compare));
        let operations = if succeeded { &request.success } else { &request.failure };
        let responses = operations.iter().map(|operation| self.operation(before, operation));
        TxnResponse { header: None, succeeded, responses: responses.collect() }
    }

    fn operation(&mut self, before: &Self, operation: &RequestOp) -> ResponseOp {
        let response = match operation.request.as_ref().expect("an operation") {
            RequestOpKind::Range(range) => {
                let kvs = self.of(&range.key, &range.range_end);
                let count = kvs.len() as i64;
                let shown = if range.limit > 0 { range.limit as usize } else { usize::MAX };
                let more = kvs.len() > shown;
                let kvs = kvs.into_iter().take(shown).collect();
                ResponseOpKind::Range(RangeResponse { header: self.now(), kvs, more, count })
            }
            RequestOpKind::Put(put) => {
                let prev = self.keys.get(&put.key).cloned();
                let mod_revision = before.revision + 1;
                let kv = KeyValue {
                    key: put.key.clone(),
                    create_revision: prev.as_ref().map_or(mod_revision, |prev| prev.create_revision),
                    mod_revision,
                    version: prev.as_ref().map_or(1, |prev| prev.version + 1),
                    value: put.value.clone(),
                    lease: 0,
                };
                self.keys.insert(put.key.clone(), kv.clone());
                self.event(EventType::Put, kv, prev.clone());
                let prev_kv = prev.filter(|_| put.prev_kv);
                ResponseOpKind::Put(PutResponse { header: self.now(), prev_kv })
            }
            RequestOpKind::DeleteRange(delete) => {
                let gone = self.of(&delete.key, &delete.range_end);
                for prev in &gone {
                    self.keys.remove(&prev.key);
                    let mod_revision = before.revision + 1;
                    let kv = KeyValue { key: prev.key.clone(), mod_revision, ..KeyValue::default() };
                    self.event(EventType::Delete, kv, Some(prev.clone()));
                }
                let deleted = gone.len() as i64;
                let prev_kvs = if delete.prev_kv { gone } else { Vec::new() };
                ResponseOpKind::DeleteRange(DeleteRangeResponse { header: self.now(), deleted, prev_kvs })
            }
            RequestOpKind::Txn(nested) => {
                let answer = self.branch(before, nested);
                ResponseOpKind::Txn(TxnResponse { header: self.now(), ..answer })
            }
        };
        ResponseOp { response: Some(response) }
    }

    fn event(&mut self, kind: EventType, kv: KeyValue, prev_kv: Option<KeyValue>) {
        self.events.push(Event { kind: kind as i32, kv: Some(kv), prev_kv });
    }

    fn now(&self) -> Option<ResponseHeader> {
        header(self.revision + i64::from(!self.events.is_empty()))
    }

    fn of(&self, key: &Bytes, end: &Bytes) -> Vec<KeyValue> {
        self.keys.values().filter(|kv| is_within(&kv.key, key, end)).cloned().collect()
    }

    fn holds(&self, compare: &Compare) -> bool {
        let of_range = self.of(&compare.key, &compare.range_end);
        let holds = |kv: Option<&KeyValue>| {
            let number = |of: fn(&KeyValue) -> i64| kv.map_or(0, of);
            let ordering = match compare.target_union.as_ref().expect("a target") {
                TargetUnion::Version(wanted) => number(|kv| kv.version).cmp(wanted),
                TargetUnion::CreateRevision(wanted) => number(|kv| kv.create_revision).cmp(wanted),
                TargetUnion::ModRevision(wanted) => number(|kv| kv.mod_revision).cmp(wanted),
                TargetUnion::Lease(wanted) => number(|kv| kv.lease).cmp(wanted),
                TargetUnion::Value(wanted) => match kv {
                    Some(kv) => kv.value.cmp(wanted),
                    None => return false,
                },
            };
            match CompareResult::try_from(compare.result).expect("a result") {
                CompareResult::Equal => ordering.is_eq(),
                CompareResult::NotEqual => ordering.is_ne(),
                CompareResult::Greater => ordering.is_gt(),
                CompareResult::Less => ordering.is_lt(),
            }
        };
        match of_range.is_empty() {
            true => holds(None),
            false => of_range.iter().all(|kv| holds(Some(kv))),
        }
    }
}

fn header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision, ..ResponseHeader::default() })
}

fn is_within(key: &Bytes, start: &Bytes, end: &Bytes) -> bool {
    match &end[..] {
        b"" => key == start,
        b"\0" => key >= start,
        end => key >= start && &key[..] < end,
    }
}

/// The answers with events that a watch got, by what it asked for.
type Told = Vec<(WatchCreateRequest, Vec<Vec<Event>>)>;

/// Watches everything, and a part of it, until the last key is put. Begins again and again where it has come to.
async fn watch_all(server: &Server, seed: u64) -> Told {
    let mut random = Random(seed);
    let mut told = Vec::new();
    for (key, end) in [("\0", "\0"), ("b", "d")] {
        let prev_kv = random.below(2) == 0;
        let request = WatchCreateRequest { prev_kv, ..watched(key, end, 1) };
        told.push(async move {
            let (mut answers, mut next) = (Vec::<Vec<Event>>::new(), 1);
            loop {
                let mut watch = server.watch();
                watch.create(WatchCreateRequest { start_revision: next, ..request.clone() }).await;
                // The last key is in another watch, so that each of them hears of the end.
                watch.create(watched("end", "", 1)).await;
                let mut left = 1 + random.0 % 30;
                while left > 0 {
                    let answer = watch.next().await;
                    let last = answer.events.last().and_then(|event| event.kv.clone());
                    let Some(last) = last else { continue };
                    if answer.watch_id == 0 {
                        next = last.mod_revision + 1;
                        answers.push(answer.events);
                        left -= 1;
                        if &last.key[..] == b"end" {
                            return (request, answers);
                        }
                    } else {
                        // What is before the end is told before it.
                        watch.send(rowplane_etcd::wire::messages::WatchRequestKind::Progress(
                            Default::default(),
                        ));
                        loop {
                            let answer = watch.next().await;
                            if answer.watch_id == -1 {
                                return (request, answers);
                            }
                            if !answer.events.is_empty() {
                                answers.push(answer.events);
                            }
                        }
                    }
                }
                random.below(7);
            }
        });
        random = Random(seed + 77);
    }
    join_all(told).await
}

/// The promises of docs/spec/etcd.md, section 4, but for those that progress makes.
fn check_watch(history: &History, request: &WatchCreateRequest, answers: &[Vec<Event>]) {
    let wanted = |event: &Event| {
        let key = &event.kv.as_ref().expect("a key").key;
        is_within(key, &request.key, &request.range_end) && &key[..] != b"end"
    };
    let mut expected: Vec<Event> =
        history.values().flatten().filter(|event| wanted(event)).cloned().collect();
    for event in &mut expected {
        event.prev_kv = event.prev_kv.take().filter(|_| request.prev_kv);
    }
    // Ordered, unique, reliable, resumable; and the previous versions, the creations and the filters are right.
    let told: Vec<Event> = answers.iter().flatten().filter(|event| wanted(event)).cloned().collect();
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(&expected) {
        assert_eq!(told, expected);
    }
    // Atomic: no revision goes on in another answer.
    let at = |event: &Event| event.kv.as_ref().map(|kv| kv.mod_revision);
    for pair in answers.windows(2) {
        assert!(pair[0].last().and_then(at) < pair[1].first().and_then(at));
    }
}

/// Numbers that are the same in every run (an LCG of Knuth's).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn key(&mut self) -> &'static str {
        ["a", "b", "b/1", "c", "d", "e"][self.below(6) as usize]
    }

    fn range(&mut self) -> (&'static str, &'static str) {
        match self.below(4) {
            0 => ("a", "c"),
            1 => ("b", "d"),
            2 => ("\0", "\0"),
            _ => (self.key(), ""),
        }
    }

    fn compare(&mut self) -> Compare {
        let number = self.below(4) as i64;
        let target = match self.below(4) {
            0 => TargetUnion::Version(number),
            1 => TargetUnion::CreateRevision(number * 20),
            2 => TargetUnion::ModRevision(number * 50),
            _ => TargetUnion::Value(bytes(&number.to_string())),
        };
        let result = match self.below(4) {
            0 => CompareResult::Equal,
            1 => CompareResult::NotEqual,
            2 => CompareResult::Greater,
            _ => CompareResult::Less,
        };
        let (key, end) = self.range();
        Compare { range_end: bytes(end), ..compare(key, target, result) }
    }

    fn operation(&mut self, depth: u64) -> RequestOp {
        let (key, end) = self.range();
        match self.below(8) {
            0 => op_delete(key, end),
            1 | 2 => {
                let RequestOp { request } = op_range(key, end);
                let Some(RequestOpKind::Range(range)) = request else { unreachable!("it is a range") };
                op(RequestOpKind::Range(RangeRequest { limit: self.below(3) as i64, ..range }))
            }
            3 if depth > 0 => op_txn(self.txn(depth - 1)),
            4 => {
                let mut request = put(self.key(), &self.below(4).to_string());
                request.prev_kv = true;
                op(RequestOpKind::Put(request))
            }
            _ => op_put(self.key(), &self.below(4).to_string()),
        }
    }

    fn txn(&mut self, depth: u64) -> TxnRequest {
        let compares = (0..self.below(3)).map(|_| self.compare()).collect();
        let success = (0..1 + self.below(3)).map(|_| self.operation(depth)).collect();
        let failure = (0..self.below(3)).map(|_| self.operation(depth)).collect();
        txn(compares, success, failure)
    }
}
