//! Lists through the door `/ask/`: in an order of their own, with exact counts, and with a limit to their work. Objects are
//! looked at before the answer begins, so that it can say how many follow, and of which ones a filter had no value.

use std::collections::BinaryHeap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use super::{Items, List, Request, Source, object, whole};
use crate::cache::Objects;
use crate::codec::object::Object;
use crate::error::Error;
use crate::long_work::Stretch;
use crate::options::ask::{Ask, Effort, Order, SortKey};
use crate::options::continue_token::LastKey;
use crate::storage::Key;
use crate::verbs::past::not_kept;
use crate::{Api, resource};

/// The longest page in an order, where its objects are not in memory anyway.
const LONGEST_ORDERED: usize = 1000;

/// The objects of a page, and how many are selected from where it begins.
struct Taken {
    page: Page,
    selected: u64,
}

enum Page {
    /// Nothing but the number is wanted.
    Counted,
    /// The first ones, in the order of their keys.
    First {
        limit: usize,
        objects: Vec<Arc<Object>>,
    },
    Best(Best),
}

/// The first objects of an order behind a place in it.
struct Best {
    limit: usize,
    after: Option<Placed>,
    /// The last one is the greatest.
    heap: BinaryHeap<(Placed, Held)>,
}

/// The sort key of an object, and the key that decides between equals.
type Placed = (SortKey, Box<str>);

/// An object that has its place already.
struct Held(Arc<Object>);

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Api {
    pub(super) async fn list_asked(
        &self,
        request: Request<'_>,
        source: Source,
        ask: Arc<Ask>,
    ) -> Result<List, Error> {
        let objects = match &source {
            Source::Memory(objects) => Some(objects.clone()),
            Source::Store => None,
        };
        let limit = match (&ask.order, request.limit) {
            (Some(_), Some(limit)) if objects.is_none() => Some(limit.min(LONGEST_ORDERED)),
            (Some(_), None) if objects.is_none() && !ask.counts => {
                let why = "rowplane.orderBy: a state that is not in memory is ordered by pages: give a limit";
                return Err(Error::bad_request(why));
            }
            (_, limit) => limit,
        };
        let page = match (&ask.order, limit) {
            _ if ask.counts => Page::Counted,
            (Some(order), _) => {
                let after = match &request.after {
                    Some(last) => Some(self.placed(&request, objects.as_ref(), order, last).await?),
                    None => None,
                };
                Page::Best(Best { limit: limit.unwrap_or(usize::MAX), after, heap: BinaryHeap::new() })
            }
            (None, None) if objects.is_none() => {
                let candidates = self.candidates(&request, source).await?;
                return Ok(request.whole(selected(&request, candidates)));
            }
            (None, limit) => Page::First { limit: limit.unwrap_or(usize::MAX), objects: Vec::new() },
        };
        // In an order, what follows a page may be anywhere.
        let is_ordered = matches!(page, Page::Best(_));
        let range = Request { after: request.after.clone().filter(|_| !is_ordered), ..request.clone() };
        let candidates = self.candidates(&range, source).await?;
        let taken = Taken { page, selected: 0 }.of(&request, candidates).await?;
        let (selected, page) = match taken.page {
            Page::Counted => {
                let items = stream::empty().boxed();
                return Ok(List { remaining: Some(taken.selected), ..request.whole(items) });
            }
            Page::First { objects, .. } => (taken.selected, objects),
            Page::Best(best) => {
                (taken.selected, best.heap.into_sorted_vec().into_iter().map(|(_, held)| held.0).collect())
            }
        };
        let rest = selected - page.len() as u64;
        if let (Some(objects), true) = (objects, rest > 0) {
            self.cache.keep(request.resource.id, request.revision, &objects);
        }
        self.page(&request, page, Some(rest).filter(|rest| *rest > 0))
    }

    /// The objects of the request's range, in the version that the resource is served in where only a webhook can make it.
    async fn candidates(&self, request: &Request<'_>, source: Source) -> Result<Items, Error> {
        let all = Request { selection: request.selection.by_key(), ..request.clone() };
        let stored = match source {
            Source::Memory(objects) => whole::from_memory(&all, objects, request.range()),
            Source::Store => whole::from_store(&all, self.rows(request).await?),
        };
        Ok(self.converter.items(request.resource, stored))
    }

    /// The place of the last object of the page before.
    async fn placed(
        &self,
        request: &Request<'_>,
        objects: Option<&Objects>,
        order: &Order,
        last: &LastKey,
    ) -> Result<Placed, Error> {
        let LastKey { namespace, name } = last;
        let found = match objects {
            Some(objects) => objects.get(namespace, name),
            None => {
                let key = Key::new(request.resource.id, namespace, name);
                let row = self.cache.backend().row_past(&key, request.revision).await;
                row.map_err(|error| not_kept(request.resource, error))?.map(object)
            }
        };
        let found = found.ok_or_else(|| Error::expired_page(None))?;
        let found = self.converter.object(request.resource, found).await?;
        placed(request.resource, order, &found)
    }
}

fn placed(resource: &resource::Resource, order: &Order, object: &Object) -> Result<Placed, Error> {
    Ok((resource.see(object, |seen| order.key(seen))?, object.key().into()))
}

impl Taken {
    /// Takes what the request selects of the candidates.
    async fn of(mut self, request: &Request<'_>, mut candidates: Items) -> Result<Self, Error> {
        let (mut effort, mut stretch) = (Effort::default(), Stretch::default());
        while let Some(chunk) = candidates.next().await {
            let chunk = chunk?;
            effort
                .spend(chunk.len(), || chunk.into_iter().try_for_each(|object| self.take(request, object)))?;
            stretch.pause().await;
        }
        Ok(self)
    }

    fn take(&mut self, request: &Request<'_>, object: Arc<Object>) -> Result<(), Error> {
        let (resource, selection) = (request.resource, &request.selection);
        if !resource.selects(selection, &object)? {
            return Ok(());
        }
        match &mut self.page {
            Page::Counted => {}
            Page::First { limit, objects } if objects.len() == *limit => {}
            Page::First { objects, .. } => objects.push(object),
            Page::Best(best) => {
                let order = selection.ask.as_ref().and_then(|ask| ask.order.as_ref());
                let Some(order) = order else { return Ok(()) };
                let place = placed(resource, order, &object)?;
                if best.after.as_ref().is_some_and(|after| place <= *after) {
                    return Ok(());
                }
                best.heap.push((place, Held(object)));
                if best.heap.len() > best.limit {
                    best.heap.pop();
                }
            }
        }
        self.selected += 1;
        Ok(())
    }
}

/// The selected ones of many objects that nobody holds.
fn selected(request: &Request<'_>, candidates: Items) -> Items {
    let (resource, selection) = (request.resource.clone(), request.selection.clone());
    let mut effort = Effort::default();
    let selected = candidates.map(move |chunk| {
        let chunk = chunk?;
        effort.spend(chunk.len(), || {
            let mut selected = Vec::new();
            for object in chunk {
                if resource.selects(&selection, &object)? {
                    selected.push(object);
                }
            }
            Ok(selected)
        })
    });
    selected.boxed()
}
