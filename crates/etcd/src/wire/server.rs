//! A server of etcd's API over a store that is opened when the first method is called.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use prost::Message;
use rowplane_store::random::Random;
use rowplane_store::wall_clock::WallClock;
use tokio::sync::OnceCell;
use tonic::Status;

use super::auth;
use super::messages::RangeRequest;
use crate::engine::{self, Etcd};

/// How long the size of the store is not asked for again.
const SIZE_AGE: Duration = Duration::from_secs(10);

/// The settings of a server.
#[derive(Clone)]
pub struct Options {
    /// The name of the member, as it is listed.
    pub name: String,
    /// The URLs by which clients are to call this server; without any, those by which they do.
    pub advertised: Vec<String>,
    /// The version of etcd that is told.
    pub version: String,
    /// The longest request, in bytes.
    pub longest_request: usize,
    /// The most bytes that the store may have, if there is such a number.
    pub quota: Option<u64>,
    /// The directory for files of snapshots, which have no name there.
    pub scratch: PathBuf,
    /// The time by which tokens end.
    pub clock: WallClock,
    /// The source of the key of tokens.
    pub random: Random,
}

/// Opens the store; the error is one line.
pub type Open = Box<dyn Fn() -> BoxFuture<'static, Result<Etcd, String>> + Send + Sync>;

/// A server of etcd's API. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    options: Options,
    open: Open,
    engine: OnceCell<Etcd>,
    /// Held by a call that reads the whole store.
    turns: Arc<tokio::sync::Mutex<()>>,
    /// The size of the store, and when it was asked for.
    size: tokio::sync::Mutex<Option<(Instant, u64)>>,
    users: auth::Known,
}

impl Server {
    pub fn new(options: Options, open: Open) -> Self {
        Self(Arc::new(Inner {
            options,
            open,
            engine: OnceCell::new(),
            turns: Arc::default(),
            size: tokio::sync::Mutex::default(),
            users: auth::Known::default(),
        }))
    }

    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The engine, once it is open.
    pub fn opened(&self) -> Option<&Etcd> {
        self.0.engine.get()
    }

    /// The engine. A store that cannot be opened is tried again with the next call.
    pub(super) async fn etcd(&self) -> Result<&Etcd, Status> {
        let open = async || {
            (self.0.open)().await.map_err(|why| {
                tracing::error!(why, "cannot open the store");
                Status::unavailable("etcdserver: no leader")
            })
        };
        self.0.engine.get_or_try_init(open).await
    }

    /// The turn of a call that reads the whole store.
    pub(super) fn turns(&self) -> &Arc<tokio::sync::Mutex<()>> {
        &self.0.turns
    }

    pub(super) fn known_users(&self) -> &auth::Known {
        &self.0.users
    }

    /// Whole seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.0.options.clock.seconds()
    }

    /// A key that nobody has used before.
    pub(super) fn new_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        self.0.options.random.with(|source| source.fill_bytes(&mut key));
        key
    }

    /// The bytes of the store, some seconds ago.
    pub(super) async fn size(&self, etcd: &Etcd) -> Result<u64, Status> {
        let mut known = self.0.size.lock().await;
        match *known {
            Some((at, size)) if at.elapsed() < SIZE_AGE => Ok(size),
            _ => {
                let size = etcd.status_numbers().await?.db_size.unwrap_or_default();
                *known = Some((Instant::now(), size));
                Ok(size)
            }
        }
    }

    /// Whether the store answers; the error is the reason that etcd gives. A store that nobody has needed yet is well.
    pub async fn is_healthy(&self) -> Result<(), String> {
        let Some(etcd) = self.opened() else { return Ok(()) };
        let request = RangeRequest { key: Bytes::from_static(b"health"), ..RangeRequest::default() };
        match etcd.range(request).await {
            Ok(_) => Ok(()),
            Err(engine::Error::NoLeader) => Err("RAFT NO LEADER".to_owned()),
            Err(error) => Err(format!("RANGE ERROR:{error}")),
        }
    }

    /// Refuses a write that is longer than requests may be.
    pub(super) fn check_length(&self, request: &impl Message) -> Result<(), Status> {
        if request.encoded_len() > self.0.options.longest_request {
            return Err(Status::invalid_argument("etcdserver: request is too large"));
        }
        Ok(())
    }
}
