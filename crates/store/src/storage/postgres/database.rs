//! A database that several stores of one process share: each has a schema of its own, with its own clock, tables, procedures and
//! migrations, and they borrow the same connections.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sqlx::postgres::PgConnection;
use tokio::sync::OnceCell;

use super::address::Address;
use super::hosts::{Host, Hosts, Use};
use super::lineage::ClusterId;
use super::listener::Listeners;
use super::places::Sizes;
use super::pool::Sessions;
use super::session::{Connector, Schema, Ways};
use super::{Postgres, pooler, unreachable, warn_of_settings, whole};
use crate::storage::OpenError;
use crate::storage::migrations::lacks_rights;

/// The longest name of a schema, in bytes. PostgreSQL cuts off the rest.
const LONGEST_NAME: usize = 63;

/// The databases that a process uses at present. Stores whose addresses are equal, but for the schema, share connections.
/// Clones are the same process's.
#[derive(Clone, Default)]
pub struct Databases(Arc<Mutex<Addresses>>);

type Addresses = Vec<(Address, Weak<Shared>)>;

impl Databases {
    /// Opens the store at this address, in this schema or else in the one that its URL names. Must be called within a runtime.
    pub async fn open(
        &self,
        address: impl Into<Address>,
        schema: Option<&str>,
    ) -> Result<Postgres, OpenError> {
        let (address, named) = address.into().split();
        Postgres::open_in(&self.database(&address)?, schema.or(named.as_deref())).await
    }

    fn database(&self, address: &Address) -> Result<Database, OpenError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, database)| database.strong_count() > 0);
        let found = known.iter().find(|(known, _)| known == address);
        if let Some(database) = found.and_then(|(_, database)| database.upgrade()) {
            return Ok(Database(database));
        }
        let database = Database::new(address)?;
        known.push((address.clone(), Arc::downgrade(&database.0)));
        Ok(database)
    }
}

impl fmt::Debug for Databases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(known.iter().map(|(address, _)| address)).finish()
    }
}

/// One process's connections to a PostgreSQL database, to be shared by the stores that [`Postgres::open_in`](super::Postgres::open_in)
/// opens. There are never more than its places, and one that listens. Clones share them.
#[derive(Clone)]
pub struct Database(Arc<Shared>);

struct Shared {
    /// The URL without secrets.
    shown: String,
    /// The schema that the URL names.
    schema: Option<String>,
    ways: Ways,
    accepted: Option<ClusterId>,
    sessions: Sessions,
    listeners: Listeners,
    /// Set once it is known that servers can use the database.
    checked: OnceCell<()>,
}

impl Database {
    /// Reads the address, and the files that it names. Connects when the first store is opened. Must be called within a
    /// runtime.
    pub fn new(address: impl Into<Address>) -> Result<Self, OpenError> {
        Self::with_places(address, super::pool::PLACES)
    }

    /// Like [`Database::new`], with other numbers of places.
    pub fn with_places(address: impl Into<Address>, places: Sizes) -> Result<Self, OpenError> {
        let address = address.into();
        let (ways, shown) = ways(&address, Use::Serving)?;
        let sessions = Sessions::new(places);
        let listeners = Listeners::new(ways.clone(), sessions.clone());
        let (_, schema) = address.split();
        let (accepted, checked) = (address.accepted, OnceCell::new());
        Ok(Self(Arc::new(Shared { shown, schema, ways, accepted, sessions, listeners, checked })))
    }

    /// The URL without secrets.
    pub(super) fn shown(&self) -> &str {
        &self.0.shown
    }

    /// The schema that the URL names.
    pub(super) fn schema(&self) -> Option<&str> {
        self.0.schema.as_deref()
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    pub(super) fn listeners(&self) -> &Listeners {
        &self.0.listeners
    }

    pub(super) fn connector(&self, schema: Schema) -> Connector {
        Connector::new(&self.0.ways, schema, self.0.accepted)
    }

    /// Refuses a database that servers cannot use, and warns of its settings. The first store does it for all.
    pub(super) async fn check(&self, host: &Host, connection: &mut PgConnection) -> Result<(), OpenError> {
        let shown = self.shown();
        let check = self.0.checked.get_or_try_init(async || {
            let pooler = pooler::find(host, connection).await.map_err(|error| unreachable(shown, error))?;
            if let Some(lends) = pooler {
                return Err(OpenError::Refused { url: shown.to_owned(), reason: lends.reason() });
            }
            warn_of_settings(connection).await.map_err(|error| unreachable(shown, error))
        });
        check.await.copied()
    }
}

/// How to connect to a database, and its URL without secrets.
pub fn ways(address: &Address, used: Use) -> Result<(Ways, String), OpenError> {
    let shown = address.to_string();
    let route = address.resolve()?;
    for warning in &route.warnings {
        tracing::warn!("{warning}");
    }
    let hosts = Hosts::new(route, used).map_err(|reason| OpenError::Url { url: shown.clone(), reason })?;
    Ok((Ways::new(hosts), shown))
}

/// The schema of this name. Fails if PostgreSQL does not allow the name.
pub fn schema_named(shown: &str, name: Option<&str>) -> Result<Schema, OpenError> {
    let Some(name) = name else { return Ok(Schema::Default) };
    if name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') || name.starts_with("pg_") {
        let reason = format!("{name:?} cannot be the name of a schema");
        return Err(OpenError::Refused { url: shown.to_owned(), reason });
    }
    Ok(Schema::Named(name.into()))
}

/// Makes a schema that is not there yet.
pub async fn make_schema(
    connection: &mut PgConnection,
    shown: &str,
    schema: &Schema,
) -> Result<(), OpenError> {
    let Schema::Named(name) = schema else { return Ok(()) };
    let failed = |error: sqlx::Error| match lacks_rights(&error) {
        true => refused(shown, format!("its user may not make the schema {name:?} ({error})")),
        false => unreachable(shown, error),
    };
    if !is_there(connection, name).await.map_err(failed)? {
        let made =
            whole::run(connection, format!("CREATE SCHEMA IF NOT EXISTS {}", whole::identifier(name))).await;
        if let Err(error) = made {
            // Another server may have been faster.
            if !is_there(connection, name).await.map_err(failed)? {
                return Err(failed(error));
            }
        }
    }
    let current: Option<String> = sqlx::query_scalar("SELECT current_schema()::text")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    match current.as_deref() == Some(&**name) {
        true => Ok(()),
        false => Err(refused(
            shown,
            format!("its user may not use the schema {name:?}: GRANT USAGE, CREATE ON SCHEMA"),
        )),
    }
}

async fn is_there(connection: &mut PgConnection, name: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)")
        .bind(name)
        .fetch_one(connection)
        .await
}

fn refused(shown: &str, reason: String) -> OpenError {
    OpenError::Refused { url: shown.to_owned(), reason }
}
