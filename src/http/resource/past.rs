//! Reads of a past state, a few at a time.

use std::sync::Arc;
use std::task::Poll;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::Instant;

use super::Context;
use super::action::Action;
use crate::api::Target;
use crate::api::error::Error;
use crate::api::options::GetOptions;
use crate::api::options::list::ListOptions;
use crate::api::options::watch::WatchOptions;
use crate::api::verbs::list::List;
use crate::api::verbs::past::Frozen;
use crate::codec::object::Object;
use crate::http::limits::PastRead;
use crate::http::past::Past;
use crate::http::request::path::ResourcePath;
use crate::schema::resource::{ResourceDefinition, Storage};

/// The kinds whose creation reads: they ask who the user is and what he may do.
const SELF_REVIEWS: [&str; 3] = ["selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"];

/// Refuses what would change the past, or would reach the present.
pub(super) fn check(
    past: &Past,
    action: Action,
    path: &ResourcePath,
    definition: &ResourceDefinition,
) -> Result<(), Error> {
    let is_review =
        action == Action::Create && path.subresource.is_none() && SELF_REVIEWS.contains(&&*definition.plural);
    let is_read = match action {
        Action::Get | Action::List | Action::Watch => definition.storage != Storage::Virtual,
        _ => false,
    };
    match is_review || is_read {
        true => Ok(()),
        false => Err(past.refuse(definition.group_resource(), path.name.as_deref().unwrap_or_default())),
    }
}

impl Context<'_> {
    pub(super) async fn get_past(
        &self,
        past: &Past,
        target: Target<'_>,
        options: GetOptions,
    ) -> Result<Arc<Object>, Error> {
        let _read = self.past_read().await?;
        self.app.api.get_as_of(target, options, past.revision).await
    }

    pub(super) async fn list_past(&self, past: &Past, options: ListOptions) -> Result<List, Error> {
        let read = self.past_read().await?;
        let namespace = self.path.namespace.as_deref();
        let list = self.app.api.list_as_of(self.resource, namespace, options, past.revision).await?;
        // The read ends with the last item.
        let items = list.items.map(move |items| {
            let _ = &read;
            items
        });
        Ok(List { items: items.boxed(), ..list })
    }

    /// The events of a watch. The read ends before the watch falls silent.
    pub(super) async fn watch_past(&self, past: &Past, options: &WatchOptions) -> Result<Frozen, Error> {
        let read = self.past_read().await?;
        let namespace = self.path.namespace.as_deref();
        let frozen = self.app.api.frozen(self.resource, namespace, options, past.revision);
        Ok(frozen.map(|mut steps| {
            let mut read = Some(read);
            let steps = stream::poll_fn(move |context| {
                let polled = steps.poll_next_unpin(context);
                if let Poll::Ready(None) = polled {
                    drop(read.take());
                }
                polled
            });
            steps.boxed()
        }))
    }

    /// Waits for its turn, no longer than the request may take.
    async fn past_read(&self) -> Result<PastRead, Error> {
        let until =
            self.deadline.get().copied().unwrap_or_else(|| Instant::now() + self.app.limits.request_time);
        self.app.past_reads.turn(until).await
    }
}
