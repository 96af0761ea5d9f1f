//! Servers in tests: snapshots and forks of them, resets, the server's time, faults, records of requests; and tests on a
//! server of their own, as [`crate::test`] writes them.
//!
//! A server has all this if it is [started for tests](Builder::for_tests), as that of [`crate::test`] is, or is a fork of one.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//! use rowplane::testing::{Answer, Fault};
//! use serde_json::json;
//!
//! let server = rowplane::Server::builder().memory().for_tests().start().await?;
//! let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
//! server.seed([&map]).await?;
//! let base = server.snapshot().await?;
//! let fork = base.fork().await?;
//! let maps: Api<ConfigMap> = Api::namespaced(kube::Client::new(fork.service(), "default"), "default");
//! fork.fault(Fault::on("delete", "configmaps").answer(Answer::Conflict).times(1))?;
//! assert!(maps.delete("a", &Default::default()).await.is_err());
//! maps.delete("a", &Default::default()).await?;
//! fork.reset(&base).await?;
//! assert!(maps.get_opt("a").await?.is_some());
//! # Ok(())
//! # }
//! ```

use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, SystemTime};

use futures_util::future::LocalBoxFuture;
use serde::Serialize;

use super::branches::SecretValues;
use super::error::Error;
use super::parent::Parent;
use super::{Builder, Server};
use crate::api::verbs::snapshot::Snapshot as Taken;
use crate::api::{Api, error};
use crate::http::test_endpoints::Controls;
pub use crate::http::test_endpoints::{Answer, Fault, Filter, Recorded};
use crate::tree::Map;

/// The state of a server at one time. Clones are the same.
#[derive(Clone)]
pub struct Snapshot {
    parent: Parent,
    taken: Arc<Taken>,
}

impl Snapshot {
    /// Starts a server that begins with the snapshot, and writes beside it. Its server must still be there.
    pub async fn fork(&self) -> Result<Server, Error> {
        self.parent.fork_of((*self.taken).clone(), SecretValues::Kept).await.map(|(server, _)| server)
    }

    pub fn revision(&self) -> u64 {
        self.taken.state.revision.0
    }
}

impl Server {
    /// The server as it is now.
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        let parent = self.parent()?.clone();
        let api = parent.api().ok_or_else(unfit)?;
        let taken = Arc::new(api.snapshot().await.map_err(of_api)?);
        Ok(Snapshot { parent, taken })
    }

    /// Makes everything what it is in a snapshot, which is that of this server or of the one that it was forked from. Uids are
    /// those of then, resourceVersions go on, and watches end, so that informers list anew.
    pub async fn reset(&self, to: &Snapshot) -> Result<(), Error> {
        let (api, controls) = self.tested()?;
        controls.reset(&api, &to.taken).await.map(drop).map_err(of_api)
    }

    /// Creates or replaces objects, in one transaction, with the status, the uids and the times that they have. They are
    /// neither validated nor admitted.
    pub async fn seed(&self, objects: impl IntoIterator<Item = impl Serialize>) -> Result<(), Error> {
        let (api, _) = self.tested()?;
        let read = |object| {
            let text = serde_json::to_string(&object)?;
            serde_json::from_str::<Map>(&text)
        };
        let objects: Result<Vec<Map>, serde_json::Error> = objects.into_iter().map(read).collect();
        let objects = objects.map_err(|error| Error::Build(error.into()))?;
        api.seed(&objects).await.map(drop).map_err(of_api)
    }

    /// Sets the server's time ahead: that of creations and deletions, by which Events and tokens expire. Certificates go by the
    /// system's time as ever.
    pub fn advance(&self, by: Duration) -> Result<(), Error> {
        self.tested().map(|(_, controls)| controls.clock.advance(by))
    }

    /// Lets the server's time stand still.
    pub fn freeze(&self, at: SystemTime) -> Result<(), Error> {
        self.tested().map(|(_, controls)| controls.clock.freeze(at))
    }

    /// Lets the server's time run again.
    pub fn unfreeze(&self) -> Result<(), Error> {
        self.tested().map(|(_, controls)| controls.clock.run())
    }

    /// Makes requests fail, or late.
    pub fn fault(&self, fault: Fault) -> Result<(), Error> {
        self.tested()?.1.faults.add(fault).map_err(of_api)
    }

    /// Ends all faults.
    pub fn clear_faults(&self) -> Result<(), Error> {
        self.tested().map(|(_, controls)| controls.faults.clear())
    }

    /// Begins to record requests.
    pub fn record_requests(&self) -> Result<(), Error> {
        self.tested().map(|(_, controls)| controls.recording.switch(true))
    }

    /// The requests that were recorded, oldest first.
    pub fn requests(&self, filter: &Filter) -> Result<Vec<Arc<Recorded>>, Error> {
        self.tested().map(|(_, controls)| controls.recording.requests(filter))
    }

    /// Ends all watches with 410 `Expired`, and gives up the history before.
    pub async fn expire_watches(&self) -> Result<(), Error> {
        let (api, controls) = self.tested()?;
        controls.expire(&api).await.map(drop).map_err(of_api)
    }

    /// Waits until nothing was written for 200 ms; whether that was so within ten seconds.
    pub async fn quiet(&self) -> Result<bool, Error> {
        let (pause, patience) = (Duration::from_millis(200), Duration::from_secs(10));
        Ok(Controls::quiet(&self.tested()?.0, pause, patience).await.is_some())
    }

    fn tested(&self) -> Result<(Arc<Api>, Arc<Controls>), Error> {
        let parent = self.parent()?;
        parent.api().zip(parent.controls()).ok_or_else(unfit)
    }
}

fn unfit() -> Error {
    Error::Build("the server is not one for tests: its builder has `for_tests`".into())
}

fn of_api(error: error::Error) -> Error {
    Error::Build(error.into())
}

/// A server that many tests begin with, each with a fork of its own: `#[rowplane::test(base = BASE)]`. It is made once, on a
/// thread of its own.
///
/// ```
/// static BASE: rowplane::testing::Base = rowplane::testing::Base::new(|| Box::pin(async {
///     let server = rowplane::Server::builder().memory().for_tests().start().await?;
///     let map = serde_json::json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
///     server.seed([map]).await?;
///     Ok(server)
/// }));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rowplane::server::Error> {
/// let mine = BASE.fork().await?;
/// # Ok(())
/// # }
/// ```
pub struct Base {
    make: fn() -> LocalBoxFuture<'static, Result<Server, Error>>,
    made: OnceLock<Result<Snapshot, String>>,
}

impl Base {
    pub const fn new(make: fn() -> LocalBoxFuture<'static, Result<Server, Error>>) -> Self {
        Self { make, made: OnceLock::new() }
    }

    /// A server that begins as the base was made.
    pub async fn fork(&self) -> Result<Server, Error> {
        match self.made.get_or_init(|| made(self.make)) {
            Ok(snapshot) => snapshot.fork().await,
            Err(why) => Err(Error::Build(why.clone().into())),
        }
    }
}

/// Makes a server that runs until the process ends, and takes a snapshot of it.
fn made(make: fn() -> LocalBoxFuture<'static, Result<Server, Error>>) -> Result<Snapshot, String> {
    let (told, made) = mpsc::channel();
    let serve = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(told.send(Err(error.to_string()))),
        };
        runtime.block_on(async {
            let started = async {
                let server = make().await?;
                let snapshot = server.snapshot().await?;
                Ok((server, snapshot))
            };
            let (_server, answer) = match started.await {
                Ok((server, snapshot)) => (Some(server), Ok(snapshot)),
                Err(error) => (None, Err(Error::one_line(&error))),
            };
            let is_there = answer.is_ok();
            drop(told.send(answer));
            if is_there {
                std::future::pending::<()>().await;
            }
        });
    };
    let thread = std::thread::Builder::new().name("rowplane-base".to_owned()).spawn(serve);
    thread.map_err(|error| error.to_string())?;
    made.recv().unwrap_or_else(|_| Err("the server of the base has panicked".to_owned()))
}

/// Runs a test beside a server, on a runtime of this thread or on one with several. The server ends with the test, whether that
/// passes or panics: requests that are under way are cut, watches too.
///
/// # Panics
///
/// If the server does not start.
#[doc(hidden)]
pub fn run<T>(builder: Builder, is_threaded: bool, test: impl AsyncFnOnce(&Server) -> T) -> T {
    run_on(builder.for_tests().start(), is_threaded, test)
}

/// Runs a test like [`run`], beside a fork of a base.
///
/// # Panics
///
/// If the base, or the fork, does not start.
#[doc(hidden)]
pub fn run_on_fork<T>(base: &Base, is_threaded: bool, test: impl AsyncFnOnce(&Server) -> T) -> T {
    run_on(base.fork(), is_threaded, test)
}

fn run_on<T>(
    server: impl Future<Output = Result<Server, Error>>,
    is_threaded: bool,
    test: impl AsyncFnOnce(&Server) -> T,
) -> T {
    let mut runtime = match is_threaded {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build().unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let server = server.await;
        let server = server
            .unwrap_or_else(|error| panic!("the server of the test does not start: {}", error.one_line()));
        test(&server).await
    })
}
