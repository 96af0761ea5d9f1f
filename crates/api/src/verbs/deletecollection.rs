//! DELETE of a collection: a list, then a DELETE of each item. It is not atomic.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::list::List;
use crate::codec::object::Object;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::long_work::Turn;
use crate::options::list::ListOptions;
use crate::options::selector::label::LabelSelector;
use crate::request::Request;
use crate::resource::Resource;
use crate::{Api, Target};

/// How many deletions run at the same time: enough to fill a batch.
const PARALLEL: usize = 64;

impl Api {
    /// Deletes the objects that `list` selects, and returns the list.
    pub async fn delete_collection(
        &self,
        request: &Request<'_>,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        mut list: ListOptions,
    ) -> Result<List, Error> {
        if strikes(Bug::CollectionTooWide) {
            list.selection.labels = LabelSelector::default();
        }
        let list = self.list_stored(resource, namespace, list).await?;
        let objects: Vec<Arc<Object>> = list.items.try_concat().await?;
        // All objects are read before the first is deleted: if one cannot be listed, nothing is deleted.
        let mut turn = Turn::default();
        for object in &objects {
            object.json()?;
            if turn.take(1) {
                turn.end().await;
            }
        }
        stream::iter(objects.iter().map(Ok))
            .try_for_each_concurrent(PARALLEL, |object| async move {
                if strikes(Bug::CollectionPassesOver) {
                    return Ok(());
                }
                let target = Target { resource, namespace: object.namespace(), name: object.name() };
                match self.delete_stored(&Request { target, ..*request }).await {
                    Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            })
            .await?;
        let items = stream::iter([Ok(objects)]).boxed();
        Ok(List { items: self.converter.items(resource, items), ..list })
    }
}
