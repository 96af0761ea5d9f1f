//! GET, LIST and WATCH of the state at a past revision, which does not change any more.

mod changed;
mod frozen;
pub mod history;

use std::sync::Arc;

use futures_util::TryStreamExt as _;

pub use self::changed::path_text;
pub use self::frozen::{Frozen, Step};
use crate::cache::event::Event;
use crate::catalog::Served;
use crate::codec::object::Object;
use crate::error::Error;
use crate::options::list::{ListAt, ListOptions};
use crate::options::{GetOptions, ReadAt};
use crate::resource::Resource;
use crate::revision::Revision;
use crate::schema::names::{GroupResource, Gvr};
use crate::storage::{self, ChangeFilter, ChangeOfPast, Moment, PastError, RowStream, Scan};
use crate::verbs::list::{List, object};
use crate::{Api, Target};

const DEFINITIONS: Gvr = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");

impl Api {
    /// The object as it was at a revision; 404 if there was none.
    pub async fn get_as_of(
        &self,
        target: Target<'_>,
        options: GetOptions,
        at: Revision,
    ) -> Result<Arc<Object>, Error> {
        if let ReadAt::AtLeast(wanted) = options.at {
            check_reached(wanted, at)?;
        }
        let key = storage::Key::new(target.resource.id, target.namespace, target.name);
        let row = self.cache.backend().row_past(&key, at).await;
        let row = row.map_err(|error| not_kept(target.resource, error))?.ok_or_else(|| target.not_found())?;
        self.converter.object(target.resource, object(row)).await
    }

    /// The objects as they were at a revision, in the version that their resource was served in.
    pub async fn list_as_of(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: ListOptions,
        at: Revision,
    ) -> Result<List, Error> {
        let revision = match &options.at {
            ListAt::Latest | ListAt::Any => at,
            ListAt::AtLeast(wanted) => check_reached(*wanted, at).map(|()| at)?,
            ListAt::Exactly(wanted) => check_reached(*wanted, at).map(|()| *wanted)?,
            ListAt::Token(token) => token.revision().unwrap_or(at),
        };
        let list = self.list_stored_as_of(resource, namespace, options, (revision, at)).await?;
        Ok(List { items: self.converter.items(resource, list.items), ..list })
    }

    /// The newest commit at or before a time in milliseconds.
    pub async fn moment_at(&self, ms: i64) -> Result<Moment, Error> {
        self.cache.backend().moment_at(ms).await.map_err(no_moment)
    }

    /// When a revision was committed.
    pub async fn moment_of(&self, revision: Revision) -> Result<Moment, Error> {
        let found = self.cache.backend().moment_of(revision).await;
        found.map(|(moment, _)| moment).map_err(no_moment)
    }

    /// The oldest revision at which all objects of a resource can be read.
    pub async fn floor(&self, resource: &Resource) -> Result<Revision, Error> {
        let floor = self.cache.backend().floor(resource.id, None).await;
        floor.map_err(|error| not_kept(resource, error))
    }

    /// Fails if a resource cannot be read any more at a revision.
    pub async fn check_floor(&self, resource: &Resource, at: Revision) -> Result<(), Error> {
        let floor = self.floor(resource).await?;
        if at >= floor {
            return Ok(());
        }
        let floor = self.moment_of(floor).await?;
        Err(not_kept(resource, PastError::Expired { resource: resource.id, floor }))
    }

    /// Changes of the past without their values, newest first.
    pub async fn changes_between(
        &self,
        filter: &ChangeFilter,
        before: Option<Revision>,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<ChangeOfPast>, Error> {
        self.cache.backend().changes_between(filter, before, after, limit).await.map_err(no_moment)
    }

    /// The resources that were served at a revision.
    pub async fn served_as_of(&self, at: Revision) -> Result<Arc<Served>, Error> {
        if let Some(served) = self.served_since(at).await? {
            return Ok(served);
        }
        let Some(definitions) = self.resources.get(&DEFINITIONS) else { return Ok(self.resources.clone()) };
        let rows = self.scan_as_of(definitions, Scan::all(definitions.id), at).await?;
        let objects: Vec<Arc<Object>> = rows.map_ok(object).try_collect().await?;
        self.served_by(&objects).await
    }

    /// The rows of a scan at a past revision.
    pub(crate) async fn scan_as_of(
        &self,
        resource: &Resource,
        scan: Scan,
        at: Revision,
    ) -> Result<RowStream, Error> {
        let rows = self.cache.backend().scan_past(scan, at).await;
        rows.map_err(|error| not_kept(resource, error))
    }

    /// How many rows a scan at a past revision has.
    pub(crate) async fn count_as_of(
        &self,
        resource: &Resource,
        scan: &Scan,
        at: Revision,
    ) -> Result<u64, Error> {
        let count = self.cache.backend().count_past(scan, at).await;
        count.map_err(|error| not_kept(resource, error))
    }

    /// The changes of a resource after one revision and up to another one, in order.
    async fn changes_until(
        &self,
        resource: &Resource,
        after: Revision,
        until: Revision,
    ) -> Result<(Vec<Arc<Event>>, Revision), Error> {
        /// The most changes that are read at a time.
        const PAGE: u32 = 256;
        let changes = self.cache.backend().changes(after, Some(resource.id), PAGE).await;
        let changes = changes.map_err(|error| not_kept(resource, PastError::Store(error)))?;
        let rows = changes.rows.into_iter().take_while(|row| row.revision <= until);
        let events = rows.map(|row| {
            let storage::Key { resource, namespace, name } = row.key;
            let made = |(revision, value)| {
                let (namespace, name) = (Box::from(&*namespace), Box::from(&*name));
                object(storage::Row { resource, namespace, name, revision, value })
            };
            let current = row.value.map(|value| made((row.revision, value)));
            Arc::new(Event::new(row.revision, current, row.previous.map(made)))
        });
        Ok((events.collect(), changes.through.min(until)))
    }
}

/// Fails like a revision that the store has not reached: beyond a past state there is nothing.
fn check_reached(wanted: Revision, at: Revision) -> Result<(), Error> {
    match wanted > at {
        true => Err(Error::FutureRevision { requested: wanted.0, current: at.0 }),
        false => Ok(()),
    }
}

/// The error of a resource that cannot be read at a revision: 410 if that state is not kept any more.
pub(super) fn not_kept(resource: &Resource, error: PastError) -> Error {
    expired_of(&resource.group_resource(), error)
}

pub(super) fn expired_of(resource: &GroupResource, error: PastError) -> Error {
    let before = match error {
        PastError::Expired { floor, .. } => {
            format!("{} (revision {})", time(floor.committed_ms), floor.revision)
        }
        PastError::Store(storage::Error::Compacted { oldest }) => format!("revision {oldest}"),
        other => return no_moment(other),
    };
    expired(format!("history of {resource} before {before} is not kept"))
}

/// The error of a time that the store does not know.
pub(super) fn no_moment(error: PastError) -> Error {
    match error {
        PastError::Future { now_ms } => Error::BadRequest(format!(
            "the time is in the future; the clock of the store says {}",
            time(now_ms)
        )),
        PastError::Store(storage::Error::Future { requested, current }) => Error::BadRequest(format!(
            "revision {requested} is in the future; the newest one of the store is {current}"
        )),
        PastError::BeforeFirst => {
            expired("history before the first commit whose time is known is not kept".to_owned())
        }
        PastError::Expired { floor, .. } => {
            let (time, revision) = (time(floor.committed_ms), floor.revision);
            expired(format!("history before {time} (revision {revision}) is not kept"))
        }
        PastError::Store(error) => error.into(),
    }
}

fn expired(message: String) -> Error {
    Error::Expired { message, continue_token: None }
}

/// A time in milliseconds as RFC 3339.
pub fn time(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
