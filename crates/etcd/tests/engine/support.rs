//! A store of any kind, servers on it, and short ways to write requests.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use rowplane_etcd::engine::{AutoCompaction, Config, Error, Etcd};
use rowplane_etcd::wire::messages::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, Event, KeyValue, PutRequest, RangeRequest,
    RequestOp, RequestOpKind, TargetUnion, TxnRequest, WatchCreateRequest, WatchRequest, WatchRequestKind,
    WatchResponse,
};
use rowplane_store::runtime::Runtime;
use rowplane_store::storage::postgres::Postgres;
use rowplane_store::storage::sqlite::Sqlite;
use rowplane_store::storage::{Backend, HighWaterMark, memory};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::sync::mpsc;

/// Removed when it is dropped.
pub enum Database {
    Memory(Arc<dyn Backend>),
    Sqlite(tempfile::TempDir),
    Postgres(Schema),
}

/// A schema of the cluster of `ROWPLANE_TEST_POSTGRES`, with a role that sees nothing else.
pub struct Schema {
    name: String,
    url: String,
}

impl Database {
    pub fn memory() -> Self {
        Self::Memory(memory::open())
    }

    pub fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a temporary directory"))
    }

    pub async fn postgres() -> Self {
        let cluster = std::env::var("ROWPLANE_TEST_POSTGRES").expect("run ./test, which starts a PostgreSQL");
        let name = format!("etcd_{}", Runtime::default().random.uuid().simple());
        let made = format!("CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}");
        execute(&cluster, &made).await;
        let mut url = cluster.replace("rowplane@", &format!("{name}@"));
        url.push_str(&format!("?options=-c%20search_path%3D{name}"));
        Self::Postgres(Schema { name, url })
    }

    pub async fn backend(&self) -> Arc<dyn Backend> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::Sqlite(directory) => {
                Arc::new(Sqlite::open(&directory.path().join("etcd.db")).await.expect("open SQLite"))
            }
            Self::Postgres(schema) => Arc::new(Postgres::open(&schema.url).await.expect("open PostgreSQL")),
        }
    }

    pub async fn server(&self) -> Server {
        self.server_with(Config { auto_compaction: AutoCompaction::Off, ..Config::default() }).await
    }

    pub async fn server_with(&self, config: Config) -> Server {
        let (backend, runtime) = (self.backend().await, Runtime::default());
        let mark = Arc::new(HighWaterMark::default());
        let etcd = Etcd::open(backend.clone(), mark, &runtime, config).await.expect("open the engine");
        Server { etcd, backend, runtime }
    }
}

async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("connect to PostgreSQL");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("execute");
}

impl Drop for Schema {
    fn drop(&mut self) {
        let statement = format!("DROP SCHEMA {0} CASCADE; DROP OWNED BY {0}; DROP ROLE {0}", self.name);
        let cluster = std::env::var("ROWPLANE_TEST_POSTGRES").unwrap_or_default();
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(execute(&cluster, &statement));
        });
        if dropped.join().is_err() {
            eprintln!("schema {} was not dropped", self.name);
        }
    }
}

/// One server of a store.
pub struct Server {
    pub etcd: Etcd,
    pub backend: Arc<dyn Backend>,
    runtime: Runtime,
}

impl Server {
    pub async fn stop(self) {
        self.runtime.tasks.stop();
        self.runtime.tasks.ended().await;
        self.backend.close().await;
    }

    pub async fn put(&self, key: &str, value: &str) -> i64 {
        let answer = self.etcd.put(put(key, value)).await.expect("put");
        answer.header.expect("a header").revision
    }

    pub async fn delete(&self, key: &str) -> (i64, i64) {
        let answer = self.etcd.delete_range(delete(key, "")).await.expect("delete");
        (answer.header.expect("a header").revision, answer.deleted)
    }

    pub async fn get(&self, key: &str) -> Option<KeyValue> {
        self.etcd.range(range(key, "")).await.expect("range").kvs.pop()
    }

    pub async fn revision(&self) -> i64 {
        self.etcd.range(range("none", "")).await.expect("range").header.expect("a header").revision
    }

    pub fn watch(&self) -> Watching {
        let (requests, received) = mpsc::unbounded_channel();
        let received = stream::unfold(received, async |mut received| {
            let request: WatchRequest = received.recv().await?;
            Some((Ok(request), received))
        });
        Watching { requests, answers: self.etcd.watch(received.boxed()).boxed() }
    }
}

/// A stream of watches.
pub struct Watching {
    requests: mpsc::UnboundedSender<WatchRequest>,
    answers: BoxStream<'static, Result<WatchResponse, Error>>,
}

impl Watching {
    pub fn send(&self, request: WatchRequestKind) {
        self.requests.send(WatchRequest { request: Some(request) }).expect("the stream lives");
    }

    pub async fn next(&mut self) -> WatchResponse {
        self.answers.next().await.expect("an answer").expect("no error")
    }

    /// Begins a watch, and returns the answer that says so.
    pub async fn create(&mut self, request: WatchCreateRequest) -> WatchResponse {
        self.send(WatchRequestKind::Create(request));
        let answer = self.next().await;
        assert!(answer.created, "{answer:?}");
        answer
    }

    /// So many events, whatever answers they come in.
    pub async fn events(&mut self, count: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < count {
            events.extend(self.next().await.events);
        }
        assert_eq!(events.len(), count, "{events:?}");
        events
    }
}

pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: bytes(key), value: bytes(value), ..PutRequest::default() }
}

pub fn delete(key: &str, range_end: &str) -> DeleteRangeRequest {
    DeleteRangeRequest { key: bytes(key), range_end: bytes(range_end), prev_kv: false }
}

pub fn range(key: &str, range_end: &str) -> RangeRequest {
    RangeRequest { key: bytes(key), range_end: bytes(range_end), ..RangeRequest::default() }
}

pub fn watched(key: &str, range_end: &str, start_revision: i64) -> WatchCreateRequest {
    WatchCreateRequest {
        key: bytes(key),
        range_end: bytes(range_end),
        start_revision,
        ..WatchCreateRequest::default()
    }
}

pub fn op(request: RequestOpKind) -> RequestOp {
    RequestOp { request: Some(request) }
}

pub fn op_put(key: &str, value: &str) -> RequestOp {
    op(RequestOpKind::Put(put(key, value)))
}

pub fn op_delete(key: &str, range_end: &str) -> RequestOp {
    op(RequestOpKind::DeleteRange(delete(key, range_end)))
}

pub fn op_range(key: &str, range_end: &str) -> RequestOp {
    op(RequestOpKind::Range(range(key, range_end)))
}

pub fn op_txn(txn: TxnRequest) -> RequestOp {
    op(RequestOpKind::Txn(txn))
}

pub fn txn(compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare, success, failure }
}

pub fn compare(key: &str, target: TargetUnion, result: CompareResult) -> Compare {
    let number = match target {
        TargetUnion::Version(_) => CompareTarget::Version,
        TargetUnion::CreateRevision(_) => CompareTarget::Create,
        TargetUnion::ModRevision(_) => CompareTarget::Mod,
        TargetUnion::Value(_) => CompareTarget::Value,
        TargetUnion::Lease(_) => CompareTarget::Lease,
    };
    Compare {
        result: result as i32,
        target: number as i32,
        key: bytes(key),
        target_union: Some(target),
        range_end: Bytes::new(),
    }
}

pub fn modified_at(key: &str, revision: i64) -> Compare {
    compare(key, TargetUnion::ModRevision(revision), CompareResult::Equal)
}
