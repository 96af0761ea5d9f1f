//! Clients that create, update and delete, so that as many objects are there at the end as at the beginning.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::task::JoinSet;

use super::counts::one;
use super::{NAMESPACES, SHARDS, Soak};
use crate::Result;
use crate::client::{APPLY, Connection, JSON, MERGE_PATCH, Protocol};
use crate::objects::{Maker, mark_patch};

/// How many writes may be under way.
const WRITERS: usize = 64;
const WRITERS_PER_CONNECTION: usize = 16;
/// One of so many objects stays for the whole time, and is only updated.
const KEPT: usize = 5;

pub struct Writer {
    soak: Arc<Soak>,
    connection: Arc<Connection>,
    maker: Maker,
    kept: VecDeque<Object>,
    passing: VecDeque<Object>,
    /// What is created next: it was deleted last, under another name.
    absent: Option<Object>,
    writes: u64,
}

/// A place for an object, and which object has it.
#[derive(Clone, Copy)]
pub struct Object {
    slot: usize,
    generation: u64,
}

impl Object {
    pub fn kept(slot: usize) -> Self {
        Self { slot: slot / KEPT * KEPT, generation: 0 }
    }

    fn path(self, soak: &Soak) -> String {
        soak.collections[self.namespace()].item(&self.name())
    }

    pub fn namespace(self) -> usize {
        self.slot % NAMESPACES
    }

    pub fn name(self) -> String {
        format!("object-{}-{}", self.slot, self.generation)
    }

    fn labels(self) -> String {
        format!(r#""shard":"{}""#, self.slot / NAMESPACES % SHARDS)
    }
}

/// Creates all objects, and returns the clients that own them.
pub async fn prepare(soak: &Arc<Soak>) -> Result<Vec<Writer>> {
    let mut connections = Vec::new();
    for n in 0..WRITERS / WRITERS_PER_CONNECTION {
        connections.push(Arc::new(Connection::open(soak.target(n), Protocol::Http2).await?));
    }
    let mut filling = JoinSet::new();
    for n in 0..WRITERS {
        let mut writer = Writer {
            soak: soak.clone(),
            connection: connections[n % connections.len()].clone(),
            maker: Maker::new(soak.object_bytes),
            kept: VecDeque::new(),
            passing: VecDeque::new(),
            absent: None,
            writes: n as u64,
        };
        filling.spawn(async move {
            for slot in (n..writer.soak.objects).step_by(WRITERS) {
                let object = Object { slot, generation: 0 };
                writer.create(object).await?.success()?;
                match slot.is_multiple_of(KEPT) {
                    true => writer.kept.push_back(object),
                    false => writer.passing.push_back(object),
                }
            }
            Result::<_>::Ok(writer)
        });
    }
    let mut writers = Vec::new();
    while let Some(writer) = filling.join_next().await {
        writers.push(writer??);
    }
    Ok(writers)
}

impl Writer {
    pub async fn work(mut self) {
        if self.soak.writes.is_at_rest() {
            return std::future::pending().await;
        }
        loop {
            self.soak.writes.turn().await;
            self.writes += 1;
            let began = Instant::now();
            match self.writes % 5 {
                0 => self.replace().await,
                1 => self.renew().await,
                _ => self.update().await,
            }
            self.soak.counts.write_took(began.elapsed());
        }
    }

    /// Deletes the oldest object that passes.
    async fn replace(&mut self) {
        let (None, Some(object)) = (self.absent, self.passing.front().copied()) else { return };
        let answer = self.connection.call(Method::DELETE, &object.path(&self.soak), None).await;
        // It is not there any more if it was deleted without an answer.
        if self.counted("delete", answer, Some(StatusCode::NOT_FOUND), |soak| &soak.counts.deletes) {
            self.passing.pop_front();
            self.absent = Some(Object { generation: object.generation + 1, ..object });
        }
    }

    /// Creates another one in its place.
    async fn renew(&mut self) {
        let Some(object) = self.absent else { return self.update().await };
        let answer = self.create(object).await;
        if self.counted("create", answer, Some(StatusCode::CONFLICT), |soak| &soak.counts.creates) {
            self.absent = None;
            self.passing.push_back(object);
        }
    }

    async fn update(&mut self) {
        let objects = if self.writes % KEPT as u64 == 2 { &mut self.kept } else { &mut self.passing };
        let Some(object) = objects.pop_front() else { return };
        objects.push_back(object);
        let (path, mark) = (object.path(&self.soak), self.mark());
        let whole = |maker: &Maker| maker.object(&object.name(), &object.labels(), &mark);
        let answer = match self.writes % 7 {
            0..3 => self.send(Method::PUT, &path, JSON, whole(&self.maker)).await,
            3..6 => self.send(Method::PATCH, &path, MERGE_PATCH, mark_patch(&mark)).await,
            _ => {
                let path = format!("{path}?fieldManager=soak&force=true");
                self.send(Method::PATCH, &path, APPLY, whole(&self.maker)).await
            }
        };
        self.counted("update", answer, None, |soak| &soak.counts.updates);
    }

    async fn create(&self, object: Object) -> Result<crate::client::Answer> {
        let body = self.maker.object(&object.name(), &object.labels(), &self.mark());
        self.send(Method::POST, &self.soak.collections[object.namespace()].path, JSON, body).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        media_type: &'static str,
        body: Bytes,
    ) -> Result<crate::client::Answer> {
        self.connection.call(method, path, Some((media_type, body))).await
    }

    /// What an event is known by: when its write was sent.
    fn mark(&self) -> String {
        format!("{}.{}", self.soak.origin.elapsed().as_micros(), self.writes)
    }

    /// Whether the write has taken effect, which is counted. Of an earlier one without an answer `repeated` tells.
    fn counted(
        &self,
        what: &str,
        answer: Result<crate::client::Answer>,
        repeated: Option<StatusCode>,
        counter: impl Fn(&Soak) -> &AtomicU64,
    ) -> bool {
        match answer {
            Ok(answer) if answer.status.is_success() => {
                one(counter(&self.soak));
                true
            }
            Ok(answer) => {
                let what = format!("{what}: {}", answer.status.as_u16());
                self.soak.counts.error(&what, String::from_utf8_lossy(&answer.body));
                Some(answer.status) == repeated
            }
            Err(error) => {
                self.soak.counts.error(&format!("{what}: no answer"), error);
                false
            }
        }
    }
}
