//! The settings of a server, one call each, and its start.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::config::{Config, Controllers, Https};
use super::datastore::Datastore;
use super::error::Error;
use super::start::{self, Application, BuildError, Environment};
use super::{Server, application};
use crate::random::Random;
use crate::runtime::Runtime;
use crate::wall_clock::WallClock;

/// Makes a [`Server`]; see [`Server::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is started before `start`"]
pub struct Builder {
    config: Config,
    runtime: Runtime,
}

impl Builder {
    /// Keeps the state in memory, which is the default: it goes with the server.
    pub fn memory(self) -> Self {
        self.datastore(Datastore::Memory)
    }

    /// Keeps the state in this SQLite file, which is made if it is not there.
    pub fn sqlite(self, path: impl Into<PathBuf>) -> Self {
        self.datastore(Datastore::Sqlite(path.into()))
    }

    /// Keeps the state in a PostgreSQL database, `postgres://USER@HOST/DATABASE`.
    pub fn postgres(self, url: &str) -> Self {
        self.datastore(Datastore::Postgres(url.into()))
    }

    pub fn datastore(mut self, datastore: Datastore) -> Self {
        self.config.datastore = datastore;
        self
    }

    /// Also listens here, with HTTPS; port 0 takes a free one. Certificates are made in the data directory. Without one
    /// they are made in a directory for temporary files, which goes with the server.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.config.https.get_or_insert_with(Https::default).address = address;
        self
    }

    /// Where certificates and what is known of the database are kept from one server to the next.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.config.data_dir = Some(directory.into());
        self
    }

    /// Runs none of the server's own controllers: no garbage is collected, and no namespace is emptied.
    pub fn without_controllers(mut self) -> Self {
        self.config.controllers = Controllers::Off;
        self
    }

    /// Another time of day than the system's.
    pub fn clock(mut self, clock: WallClock) -> Self {
        self.runtime.clock = clock;
        self
    }

    /// Names and ids that are generated come from here.
    pub fn random(mut self, random: Random) -> Self {
        self.runtime.random = random;
        self
    }

    /// All settings at once, in place of those made before.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Starts the server. Returns once it answers requests.
    pub async fn start(self) -> Result<Server, Error> {
        self.start_with(application::build).await
    }

    /// Starts a server whose application is made by `build`, which may open the store in a way of its own
    /// ([`application::build_on`]).
    pub async fn start_with<B>(self, build: B) -> Result<Server, Error>
    where
        B: AsyncFnOnce(Environment) -> Result<Application, BuildError>,
    {
        start::start(self.config, self.runtime, build).await
    }
}
