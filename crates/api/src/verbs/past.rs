//! GET, LIST and WATCH of the state at a past revision, which does not change any more.

mod frozen;

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};

pub use self::frozen::{Frozen, Step};
use crate::cache::event::Event;
use crate::catalog::Served;
use crate::codec::object::Object;
use crate::error::Error;
use crate::options::list::{ListAt, ListOptions};
use crate::options::{GetOptions, ReadAt};
use crate::resource::Resource;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::storage::{self, RowStream, Scan};
use crate::verbs::list::{List, object};
use crate::{Api, Target};

/// tmp
pub struct Moment {
    pub revision: Revision,
    pub committed_ms: i64,
}

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
        let after = (target.namespace.into(), before(target.name).into());
        let scan = Scan { after: Some(after), limit: Some(1), ..Scan::all(target.resource.id) };
        let row = self.scan_as_of(target.resource, scan, at).await?.next().await.transpose()?;
        let is_named =
            |row: &storage::Row| *row.namespace == *target.namespace && *row.name == *target.name;
        let row = row.filter(is_named).ok_or_else(|| target.not_found())?;
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

    /// When a revision was committed.
    pub async fn moment_of(&self, revision: Revision) -> Result<Moment, Error> {
        let clock = self.cache.clock().await?;
        check_reached(revision, clock.revision)?;
        Ok(Moment { revision, committed_ms: self.runtime.clock.timestamp().as_millisecond() })
    }
    pub async fn moment_at(&self, _ms: i64) -> Result<Moment, Error> {
        Err(Error::bad_request("not yet"))
    }

    /// What was served at a revision.
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
        let rows = self.cache.backend().scan(scan, at).await;
        rows.map_err(|error| not_kept(resource, error))
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
        let changes = changes.map_err(|error| not_kept(resource, error))?;
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

/// The 410 of a state that is not kept any more.
fn not_kept(resource: &Resource, error: storage::Error) -> Error {
    match error {
        storage::Error::Compacted { oldest } => Error::Expired {
            message: format!("history of {} before revision {oldest} is not kept", resource.group_resource()),
            continue_token: None,
        },
        other => other.into(),
    }
}

/// A text directly before this name: no name is between them.
fn before(name: &str) -> String {
    let mut text = name.to_owned();
    let last = text.pop().and_then(|last| char::from_u32(u32::from(last).checked_sub(1)?));
    text.extend(last);
    text.extend(last.map(|_| char::MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn nothing_is_between_a_name_and_the_text_before_it() {
        assert!(before("web") < "web".to_owned());
        assert!(before("web").as_str() > "wea-0");
        assert!(before("web").as_str() > "we");
    }
}
