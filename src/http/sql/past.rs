//! Rows as of a revision, from the store.

use std::sync::Arc;

use futures_util::StreamExt as _;
use rowplane_sql::Error as SqlError;
use tokio::time::timeout_at;

use super::session::{Session, timed_out};
use super::wanted::{Found, Wanted};
use crate::api::Target;
use crate::api::error::Error;
use crate::api::options::list::{ListAt, ListOptions, Selection};
use crate::api::options::{GetOptions, ReadAt};
use crate::api::resource::Resource;
use crate::api::verbs::list::Items;
use crate::codec::object::Object;
use crate::http::app::App;
use crate::http::past::when::When;
use crate::revision::Revision;

/// The most times that a statement may name.
const MOST_TIMES: usize = 16;
/// The most keys that are read one by one. More are found in a scan of their namespaces.
const MOST_KEYS: usize = 64;

/// The revision of a time as a statement spells it.
pub async fn revision(app: &App, time: &str) -> Result<Revision, Error> {
    let when = When::parse(time).map_err(|error| Error::BadRequest(error.to_string()))?;
    let moment = match when {
        When::Time(time) => app.api.moment_at(time.as_millisecond()).await?,
        When::Revision(revision) => app.api.moment_of(revision).await?,
    };
    Ok(moment.revision)
}

/// The revision of a time in a statement, which may name a few only, since each of them makes a scan.
pub fn revision_of(session: &Session, time: &str) -> Result<Revision, Error> {
    match session.times(|times| (times.get(time).copied(), times.len())) {
        (Some(revision), _) => return Ok(revision),
        (None, count) if count >= MOST_TIMES => {
            return Err(Error::BadRequest(format!("a statement may name at most {MOST_TIMES} times")));
        }
        (None, _) => {}
    }
    let found = wait(session, revision(&session.app, time))??;
    session.times(|times| times.insert(time.to_owned(), found));
    Ok(found)
}

/// The wanted objects as of a revision.
pub fn objects(
    session: &Arc<Session>,
    resource: &Arc<Resource>,
    wanted: Wanted,
    at: Revision,
) -> Result<Found, SqlError> {
    let Wanted { keys, mut namespaces } = wanted;
    if keys.len() <= MOST_KEYS && namespaces.is_empty() {
        let (session, resource) = (session.clone(), resource.clone());
        let get = move |(namespace, name): (String, String)| {
            let target = Target { resource: &resource, namespace: &namespace, name: &name };
            let reading = session.app.api.get_as_of(target, GetOptions { at: ReadAt::Latest }, at);
            match wait(&session, reading) {
                Ok(Ok(object)) => Some(Ok(object)),
                Ok(Err(Error::NotFound { .. })) => None,
                Ok(Err(error)) | Err(error) => Some(Err(SqlError::table(error))),
            }
        };
        return Ok(Box::new(keys.into_iter().filter_map(get)));
    }
    for (namespace, _) in &keys {
        let namespace = Some(namespace.clone()).filter(|namespace| !namespace.is_empty());
        if !namespaces.contains(&namespace) {
            namespaces.push_back(namespace);
        }
    }
    Ok(Box::new(Lists {
        session: session.clone(),
        resource: resource.clone(),
        at,
        namespaces: namespaces.into_iter(),
        items: None,
        ready: Vec::new().into_iter(),
    }))
}

/// Lists of some namespaces, one after the other, for the thread of a statement.
struct Lists {
    session: Arc<Session>,
    resource: Arc<Resource>,
    at: Revision,
    namespaces: std::collections::vec_deque::IntoIter<Option<String>>,
    items: Option<Items>,
    ready: std::vec::IntoIter<Arc<Object>>,
}

impl Lists {
    /// The next objects; `None` behind the last ones.
    fn fill(&mut self) -> Result<Option<Vec<Arc<Object>>>, Error> {
        let Some(items) = &mut self.items else {
            let Some(namespace) = self.namespaces.next() else { return Ok(None) };
            let options = everything();
            let listing =
                self.session.app.api.list_as_of(&self.resource, namespace.as_deref(), options, self.at);
            self.items = Some(wait(&self.session, listing)??.items);
            return Ok(Some(Vec::new()));
        };
        let chunk = wait(&self.session, items.next())?.transpose()?;
        if chunk.is_none() {
            self.items = None;
        }
        Ok(Some(chunk.unwrap_or_default()))
    }
}

impl Iterator for Lists {
    type Item = Result<Arc<Object>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(object) = self.ready.next() {
                return Some(Ok(object));
            }
            match self.fill() {
                Ok(Some(objects)) => self.ready = objects.into_iter(),
                Ok(None) => return None,
                Err(error) => return Some(Err(SqlError::table(error))),
            }
        }
    }
}

fn everything() -> ListOptions {
    ListOptions { selection: Selection::default(), at: ListAt::Latest, limit: None }
}

/// Waits on the thread of a statement, until its deadline.
pub fn wait<T>(session: &Session, work: impl Future<Output = T>) -> Result<T, Error> {
    let deadline = session.deadline.into();
    let waiting = async { timeout_at(deadline, work).await };
    session.runtime.block_on(waiting).map_err(|_| timed_out())
}
