//! The events of a watch of a past state: the state itself, or the changes that led to it.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::check_reached;
use crate::Api;
use crate::cache::event::Event;
use crate::codec::object::Object;
use crate::error::Error;
use crate::options::ReadAt;
use crate::options::list::{ListAt, ListOptions};
use crate::options::watch::{StateEnd, WatchOptions, WatchStart};
use crate::resource::Resource;
use crate::revision::Revision;

/// The events of a watch of a past state. None follow.
pub struct Frozen {
    /// The revision of the state.
    pub at: Revision,
    steps: Mutex<Steps>,
}

pub type Steps = BoxStream<'static, Result<Step, Error>>;

impl Frozen {
    /// The events with something that wraps them.
    pub fn map(self, wrap: impl FnOnce(Steps) -> Steps) -> Self {
        let steps = self.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        Self { at: self.at, steps: Mutex::new(wrap(steps)) }
    }

    /// The next part; none after the end.
    pub async fn next(&mut self) -> Option<Result<Step, Error>> {
        // Never locked: a mutex makes the stream, which one task polls, one that others may hold a reference to.
        self.steps.get_mut().unwrap_or_else(PoisonError::into_inner).next().await
    }
}

/// A part of the events.
pub enum Step {
    /// Selected objects of the state.
    State(Vec<Arc<Object>>),
    EndOfState,
    /// Changes of the resource in any namespace, whether they are selected or not.
    Changes(Vec<Arc<Event>>),
}

impl Api {
    /// The events of a watch of the state at a revision. They are read as the client reads them.
    pub fn frozen(
        self: &Arc<Self>,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: &WatchOptions,
        at: Revision,
    ) -> Frozen {
        let (api, resource) = (self.clone(), resource.clone());
        let steps = match options.start {
            WatchStart::Now => stream::empty().boxed(),
            WatchStart::After(revision) => api.past_changes(resource, revision, at),
            WatchStart::State { at: wanted, end } => {
                let options =
                    ListOptions { selection: options.selection.clone(), at: ListAt::Latest, limit: None };
                let namespace = namespace.map(str::to_owned);
                let state = async move {
                    if let ReadAt::AtLeast(wanted) = wanted {
                        check_reached(wanted, at)?;
                    }
                    let list = api.list_as_of(&resource, namespace.as_deref(), options, at).await?;
                    Ok::<_, Error>(list.items.map_ok(Step::State))
                };
                let end = (end == StateEnd::Bookmark).then_some(Ok(Step::EndOfState));
                stream::once(state).try_flatten().chain(stream::iter(end)).boxed()
            }
        };
        Frozen { at, steps: Mutex::new(steps.fuse().boxed()) }
    }

    /// The changes after one revision and up to another one.
    fn past_changes(
        self: Arc<Self>,
        resource: Arc<Resource>,
        after: Revision,
        until: Revision,
    ) -> BoxStream<'static, Result<Step, Error>> {
        stream::try_unfold((self, resource, after), move |(api, resource, after)| async move {
            check_reached(after, until)?;
            if after == until {
                return Ok(None);
            }
            let (events, through) = api.changes_until(&resource, after, until).await?;
            Ok(Some((Step::Changes(events), (api, resource, through))))
        })
        .boxed()
    }
}
