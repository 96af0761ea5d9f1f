//! Lists that select by what only a webhook can make of the stored objects: all candidates are converted first.

use std::sync::Arc;

use futures_util::stream::StreamExt as _;

use super::{Items, List, Request, Source, whole};
use crate::Api;
use crate::error::Error;

impl Api {
    pub(super) async fn list_converted(&self, request: Request<'_>, source: Source) -> Result<List, Error> {
        let all = Request { selection: request.selection.by_key(), ..request.clone() };
        let range = request.range();
        let candidates = match &source {
            Source::Memory(objects) => whole::from_memory(&all, objects.clone(), range),
            Source::Store => {
                let rows = self.cache.backend().scan(request.scan(), request.revision).await?;
                whole::from_store(&all, rows)
            }
        };
        let mut candidates = self.converter.items(request.resource, candidates);
        let Some(limit) = request.limit else {
            return Ok(request.whole(selected(&request, candidates)));
        };
        let (mut page, mut more) = (Vec::with_capacity(limit.min(1024)), false);
        'page: while let Some(chunk) = candidates.next().await {
            for object in chunk? {
                if page.len() == limit {
                    more = true;
                    break 'page;
                }
                if request.resource.selects(&request.selection, &object)? {
                    page.push(object);
                }
            }
            tokio::task::yield_now().await;
        }
        if let (true, Source::Memory(objects)) = (more, &source) {
            self.cache.keep(request.resource.id, request.revision, objects);
        }
        // How many follow is not known without converting them.
        self.page(&request, page, more.then_some(1))
    }
}

fn selected(request: &Request<'_>, items: Items) -> Items {
    let (resource, selection) = (request.resource.clone(), Arc::new(request.selection.clone()));
    let selected = items.map(move |chunk| {
        let mut selected = Vec::new();
        for object in chunk? {
            if resource.selects(&selection, &object)? {
                selected.push(object);
            }
        }
        Ok(selected)
    });
    selected.boxed()
}
