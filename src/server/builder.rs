//! Builds and starts a server, with one method per setting.

use std::net::SocketAddr;
use std::path::PathBuf;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use tracing::Instrument as _;

use super::config::{Config, Controllers, Https};
use super::datastore::Datastore;
use super::definitions::Source;
use super::environment::{Application, Build, Environment};
use super::error::{BuildError, Error};
use super::membership::Membership;
use super::network::KUBECONFIG;
use super::start::At;
use super::{Server, application, start};
use crate::random::Random;
use crate::runtime::Runtime;
use crate::wall_clock::WallClock;

/// Builds a [`Server`]; see [`Server::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is started before `start`"]
pub struct Builder {
    config: Config,
    runtime: Runtime,
}

impl Builder {
    /// Keeps the state in memory, where it lives as long as the server. This is the default.
    pub fn memory(self) -> Self {
        self.datastore(Datastore::Memory)
    }

    /// Keeps the state in this SQLite file, which is created if it does not exist.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(self, path: impl Into<PathBuf>) -> Self {
        self.datastore(Datastore::Sqlite(path.into()))
    }

    /// Keeps the state in a PostgreSQL database, `postgres://USER@HOST/DATABASE`.
    #[cfg(feature = "postgres")]
    pub fn postgres(self, url: &str) -> Self {
        self.datastore(Datastore::Postgres(url.into()))
    }

    /// Keeps the state in this schema of the PostgreSQL database, which is made if it is not there.
    pub fn schema(mut self, name: &str) -> Self {
        self.config.schema = Some(name.to_owned());
        self
    }

    pub fn datastore(mut self, datastore: Datastore) -> Self {
        self.config.datastore = datastore;
        self
    }

    /// Also listens on this address, with HTTPS; port 0 means any free port. Certificates are created in the data
    /// directory, or if none is set, in a temporary directory that is removed with the server.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.config.https.get_or_insert_with(Https::default).address = address;
        self.with_kubeconfig()
    }

    /// The directory in which certificates, the kubeconfig and the high-water mark are kept from one server to the next.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.config.data_dir = Some(directory.into());
        self.with_kubeconfig()
    }

    /// Names the kubeconfig of a server that listens and has a data directory, unless it has a name.
    fn with_kubeconfig(mut self) -> Self {
        if let (Some(https), Some(directory)) = (&mut self.config.https, &self.config.data_dir) {
            https.kubeconfig.get_or_insert_with(|| directory.join(KUBECONFIG));
        }
        self
    }

    /// Serves the CustomResourceDefinitions of these files and directories from the start on.
    pub fn crds(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.config.crds.extend(paths.into_iter().map(|path| Source::Path(path.into())));
        self
    }

    /// Serves this CustomResourceDefinition, or those of a List, from the start on: `.crd(&Widget::crd())` with the `kube` crate.
    pub fn crd(mut self, definition: &impl Serialize) -> Self {
        let value = serde_json::to_string(definition).and_then(|text| serde_json::from_str(&text));
        self.config.crds.push(Source::Object(value.map_err(|error| error.to_string())));
        self
    }

    /// Runs none of the controllers: garbage is not collected, and namespaces are not emptied.
    pub fn without_controllers(mut self) -> Self {
        self.config.controllers = Controllers::Off;
        self
    }

    /// Lets tests do with the server what [`testing`](super::testing) says; over HTTP, too, at a loopback address.
    pub fn for_tests(mut self) -> Self {
        self.config.test_endpoints = true;
        self
    }

    /// Uses this clock instead of the system's.
    pub fn clock(mut self, clock: WallClock) -> Self {
        self.runtime.clock = clock;
        self
    }

    /// The source of generated names and ids.
    pub fn random(mut self, random: Random) -> Self {
        self.runtime.random = random;
        self
    }

    /// Replaces all settings made so far.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Starts the server. Returns once it answers requests.
    pub fn start(self) -> BoxFuture<'static, Result<Server, Error>> {
        self.start_with(application::build)
    }

    /// Starts a server whose application is made by `build`, which may open the store in its own way
    /// ([`application::build_on`]).
    ///
    /// A box, so that the server's futures are compiled in this crate and not again in each program that starts one.
    pub fn start_with<B, F>(self, build: B) -> BoxFuture<'static, Result<Server, Error>>
    where
        B: FnOnce(Environment) -> F + Send + 'static,
        F: Future<Output = Result<Application, BuildError>> + Send + 'static,
    {
        let build: Build = Box::new(move |environment| build(environment).boxed());
        start::start(self.config, self.runtime, At::Own, build).boxed()
    }

    /// Starts the server as a member of a process.
    pub(super) fn start_as(
        self,
        membership: Membership,
        build: Build,
    ) -> BoxFuture<'static, Result<Server, Error>> {
        let mut runtime = self.runtime;
        membership.name_runtime(&mut runtime);
        let span = membership.span().clone();
        start::start(self.config, runtime, At::Process(membership), build).instrument(span).boxed()
    }
}
