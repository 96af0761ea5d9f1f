//! Rows as of a revision, from the store.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rowplane_sql::Error as SqlError;
use tokio::time::timeout_at;

use super::objects::{Found, Wanted};
use super::rights::Visible;
use super::session::{Session, timed_out};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::codec::object::{Draft, Object};
use crate::revision::Revision;
use crate::storage::{self, Backend, Row, Scan};

/// Rows that are taken from the store at a time.
const CHUNK: usize = 256;

/// The revision of a time as a statement spells it.
pub fn revision(_: &Session, time: &str) -> Result<Revision, Error> {
    let revision = time.strip_prefix("rv-").and_then(|number| number.parse().ok()).map(Revision);
    revision.ok_or_else(|| Error::BadRequest(format!("{time:?} is not a time: a revision such as rv-1234 is")))
}

/// The wanted objects as of a revision.
pub fn objects(
    session: &Arc<Session>,
    resource: &Resource,
    visible: &Visible,
    wanted: Wanted,
    at: Revision,
) -> Result<Found, SqlError> {
    if at > session.state.revision {
        let current = session.state.revision.0;
        return Err(SqlError::table(Error::FutureRevision { requested: at.0, current }));
    }
    let names = wanted.keys.iter().map(|(_, name)| name.clone()).collect::<std::collections::HashSet<_>>();
    let is_by_key = !wanted.keys.is_empty();
    let mut namespaces: Vec<Option<String>> = wanted.namespaces.into();
    for (namespace, _) in wanted.keys {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        if !namespaces.contains(&namespace) {
            namespaces.push(namespace);
        }
    }
    debug_assert!(*visible != Visible::Nothing || namespaces.is_empty());
    let backend = session.app.api.cache.backend().clone();
    let scans = namespaces.into_iter().map({
        let id = resource.id;
        move |namespace| Scan { namespace: namespace.map(Into::into), ..Scan::all(id) }
    });
    let rows = rows(backend, scans.collect(), at);
    let found = Blocking { session: session.clone(), rows, ready: Vec::new().into_iter() };
    let is_wanted = move |found: &Result<Arc<Object>, SqlError>| {
        !is_by_key || found.as_ref().map_or(true, |object| names.contains(object.name()))
    };
    Ok(Box::new(found.filter(is_wanted)))
}

type RowsOfScans = BoxStream<'static, Result<Row, storage::Error>>;

/// The rows of several scans, one after the other.
fn rows(backend: Arc<dyn Backend>, scans: Vec<Scan>, at: Revision) -> RowsOfScans {
    stream::iter(scans)
        .then(move |scan| {
            let backend = backend.clone();
            async move {
                match backend.scan(scan, at).await {
                    Ok(rows) => rows,
                    Err(error) => stream::iter([Err(error)]).boxed(),
                }
            }
        })
        .flatten()
        .boxed()
}

/// A stream of rows as an iterator, for the thread of a statement.
struct Blocking {
    session: Arc<Session>,
    rows: RowsOfScans,
    ready: std::vec::IntoIter<Result<Row, storage::Error>>,
}

impl Iterator for Blocking {
    type Item = Result<Arc<Object>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.len() == 0 {
            let deadline = tokio::time::Instant::from_std(self.session.deadline);
            let mut chunks = (&mut self.rows).ready_chunks(CHUNK);
            let next = async { timeout_at(deadline, chunks.next()).await };
            match self.session.runtime.block_on(next) {
                Ok(Some(rows)) => self.ready = rows.into_iter(),
                Ok(None) => return None,
                Err(_) => return Some(Err(SqlError::table(timed_out()))),
            }
        }
        Some(match self.ready.next()? {
            Ok(row) => Ok(object(row)),
            Err(error) => Err(SqlError::table(Error::from(error))),
        })
    }
}

fn object(row: Row) -> Arc<Object> {
    Arc::new(Draft::parse(&row.namespace, &row.name, row.value).into_object(row.revision))
}
