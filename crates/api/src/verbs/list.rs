//! LIST: chooses the state to read, the part of it, and the page. Items are streamed, so memory does not grow with the
//! list.

mod asked;
mod converted;
pub mod token_keys;
mod whole;

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

use crate::Api;
use crate::cache::{Exact, Objects, Range};
use crate::codec::object::{Draft, Object};
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::long_work::{Turn, decoding};
use crate::options::continue_token::{ContinueToken, LastKey, PageAt, Scope};
use crate::options::list::{ListAt, ListOptions, Selection};
use crate::resource::Resource;
use crate::revision::Revision;
use crate::storage::{self, RowStream, Scan};

/// Items per chunk. For each chunk the place where it starts is looked up again.
const CHUNK: usize = 256;

/// A page, or the whole list.
pub struct List {
    /// The revision of the snapshot from which the items are taken.
    pub revision: Revision,
    /// Empty on the last page.
    pub continue_token: String,
    /// How many items follow. Set only together with a token, and only without selectors, but for lists through the door
    /// `/ask/`.
    pub remaining: Option<u64>,
    pub items: Items,
}

/// Chunks of items in key order. An error ends them, and the list is then incomplete.
pub type Items = BoxStream<'static, Result<Vec<Arc<Object>>, Error>>;

/// The source of a list's items.
enum Source {
    Memory(Objects),
    Store,
}

/// The parameters of a list after its state was chosen.
#[derive(Clone)]
struct Request<'a> {
    resource: &'a Arc<Resource>,
    /// The namespace in the path.
    namespace: Option<&'a str>,
    selection: Selection,
    limit: Option<usize>,
    after: Option<LastKey>,
    /// The number in the continue token: how many objects follow `after`.
    remaining: Option<u64>,
    revision: Revision,
    /// The revision of the door to the past through which the request came.
    door: Option<Revision>,
}

/// The state that a list reads, and the revision of the door to the past through which the request came.
struct At {
    revision: Revision,
    door: Option<Revision>,
}

impl Api {
    /// Lists objects, in the version that their resource is served in where only a webhook can make that of them.
    pub async fn list(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: ListOptions,
    ) -> Result<List, Error> {
        let list = self.list_stored(resource, namespace, options).await?;
        Ok(List { items: self.converter.items(resource, list.items), ..list })
    }

    /// Lists objects as they are stored, unless a webhook had to be asked which ones are selected.
    pub(crate) async fn list_stored(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: ListOptions,
    ) -> Result<List, Error> {
        let (source, revision) = self.source(resource, namespace, &options.at).await.map_err(|error| {
            match error {
                // An order cannot go on with newer data, in which the last object may be elsewhere.
                Error::Expired { .. } if !options.selection.order().is_empty() => Error::expired_page(None),
                error => error,
            }
        })?;
        self.list_from(source, resource, namespace, options, At { revision, door: None }).await
    }

    /// Lists objects as they were stored at a past revision, through the door of another one.
    pub(crate) async fn list_stored_as_of(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: ListOptions,
        (revision, door): (Revision, Revision),
    ) -> Result<List, Error> {
        self.list_from(Source::Store, resource, namespace, options, At { revision, door: Some(door) }).await
    }

    async fn list_from(
        &self,
        source: Source,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: ListOptions,
        At { revision, door }: At,
    ) -> Result<List, Error> {
        let ListOptions { selection, at, limit } = options;
        let limit = limit.and_then(|limit| usize::try_from(limit.get()).ok());
        // Upstream's cache ignores the limit if the request accepts any state.
        let limit = limit.filter(|_| at != ListAt::Any);
        let (after, remaining) = match at {
            ListAt::Token(token) => (Some(token.after), token.remaining),
            _ => (None, None),
        };
        let request = Request { resource, namespace, selection, limit, after, remaining, revision, door };
        if let Some(ask) = request.selection.ask.clone() {
            return Box::pin(self.list_asked(request, source, ask)).await;
        }
        if resource.hooked().is_some() && request.selection.looks_inside() {
            return self.list_converted(request, source).await;
        }
        match source {
            Source::Memory(objects) => self.list_memory(request, objects).await,
            Source::Store => self.list_store(request).await,
        }
    }

    /// Chooses the state to read: docs/spec/list-watch.md, table 2.1.
    async fn source(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        at: &ListAt,
    ) -> Result<(Source, Revision), Error> {
        let state = match at {
            ListAt::Latest => self.cache.fresh_for_request().await?,
            ListAt::Any => self.cache.any(),
            ListAt::AtLeast(revision) => self.cache.at_least(*revision).await?,
            ListAt::Exactly(revision) => return self.exact(resource, *revision).await.map_err(Error::from),
            ListAt::Token(token) => match token.at {
                PageAt::Latest => self.cache.fresh_for_request().await?,
                PageAt::Revision(_) if strikes(Bug::PagesOfTwoStates) => self.cache.fresh().await?,
                PageAt::Revision(revision) => {
                    let exact = self.exact(resource, revision).await;
                    return exact.map_err(|error| self.page_error(resource, namespace, token, error));
                }
            },
        };
        // A resource that the cache has just dropped is unknown, not empty.
        if !state.holds(resource.id) {
            return Err(Error::UnknownResource);
        }
        Ok((Source::Memory(state.objects(resource.id)), state.revision))
    }

    async fn exact(
        &self,
        resource: &Resource,
        revision: Revision,
    ) -> Result<(Source, Revision), storage::Error> {
        let source = match self.cache.exactly(resource.id, revision).await? {
            Exact::Memory(objects) => Source::Memory(objects),
            Exact::Store => Source::Store,
        };
        Ok((source, revision))
    }

    /// The error of a token whose snapshot is gone. It carries a new token, which continues with the newest data.
    fn page_error(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        token: &ContinueToken,
        error: storage::Error,
    ) -> Error {
        if !matches!(error, storage::Error::Compacted { .. }) {
            return error.into();
        }
        let fresh = ContinueToken { at: PageAt::Latest, after: token.after.clone(), remaining: None };
        let group_resource = resource.group_resource();
        let scope = Scope { resource: &group_resource, namespace, door: None, order: "" };
        Error::expired_page(self.token_keys.load().encode(&fresh, scope).ok())
    }

    async fn list_memory(&self, request: Request<'_>, objects: Objects) -> Result<List, Error> {
        let range = request.range();
        let Some(limit) = request.limit else {
            return Ok(request.whole(whole::from_memory(&request, objects, range)));
        };
        let (effort, mut turn) = (request.selection.effort(), Turn::default());
        let mut page = Vec::with_capacity(limit.min(1024));
        let mut items = objects.range(&range);
        for object in items.by_ref() {
            if request.resource.selects(&request.selection, object)? {
                page.push(object.clone());
                if page.len() == limit {
                    break;
                }
            }
            if turn.take(effort.of(object)) {
                turn.end().await;
            }
        }
        let more = page.len() == limit && items.next().is_some();
        let remaining = match request.remaining_after(page.len()) {
            _ if !more => None,
            Some(known) => Some(known),
            // With selectors the answer says only that there is more, not how much.
            None if !request.unfiltered() => Some(1),
            None if request.is_of_all() => Some((objects.len() - page.len()) as u64),
            None => {
                // One item was taken already, to find out whether there is more.
                let mut rest = 1;
                while items.next().is_some() {
                    rest += 1;
                    if turn.take(1) {
                        turn.end().await;
                    }
                }
                Some(rest)
            }
        };
        if more {
            self.cache.keep(request.resource.id, request.revision, &objects);
        }
        self.page(&request, page, remaining)
    }

    async fn list_store(&self, request: Request<'_>) -> Result<List, Error> {
        let mut rows = self.rows(&request).await?;
        let Some(limit) = request.limit else {
            return Ok(request.whole(whole::from_store(&request, rows)));
        };
        let mut turn = Turn::default();
        let mut page = Vec::with_capacity(limit.min(1024));
        let mut more = false;
        while let Some(row) = rows.next().await {
            if page.len() == limit {
                more = true;
                break;
            }
            let object = object(row?);
            if turn.take(decoding(object.size())) {
                turn.end().await;
            }
            if request.resource.selects(&request.selection, &object)? {
                page.push(object);
            }
        }
        let remaining = match (more, request.remaining_after(page.len())) {
            (false, _) => None,
            (true, Some(known)) => Some(known),
            (true, None) if !request.unfiltered() => Some(1),
            (true, None) => {
                let all = self.count(&request).await?;
                Some(all.saturating_sub(page.len() as u64))
            }
        };
        self.page(&request, page, remaining)
    }

    async fn rows(&self, request: &Request<'_>) -> Result<RowStream, Error> {
        match request.door {
            Some(_) => self.scan_as_of(request.resource, request.scan(), request.revision).await,
            None => Ok(self.cache.backend().scan(request.scan(), request.revision).await?),
        }
    }

    async fn count(&self, request: &Request<'_>) -> Result<u64, Error> {
        match request.door {
            Some(_) => self.count_as_of(request.resource, &request.scan(), request.revision).await,
            None => Ok(self.cache.backend().count(&request.scan(), request.revision).await?),
        }
    }

    /// Makes a page. `remaining` is the number of keys that follow; `None` if there are none.
    fn page(
        &self,
        request: &Request<'_>,
        page: Vec<Arc<Object>>,
        remaining: Option<u64>,
    ) -> Result<List, Error> {
        let is_exact = request.unfiltered() || request.selection.ask.is_some();
        let overlap = usize::from(page.len() > 1 && strikes(Bug::PageOverlaps));
        let continue_token = match (remaining, page.iter().nth_back(overlap)) {
            (Some(remaining), Some(last)) => {
                let after = LastKey { namespace: last.namespace().to_owned(), name: last.name().to_owned() };
                let at = PageAt::Revision(request.revision);
                let token = ContinueToken { at, after, remaining: is_exact.then_some(remaining) };
                let group_resource = request.resource.group_resource();
                let (namespace, door) = (request.namespace, request.door);
                let order = request.selection.order();
                let scope = Scope { resource: &group_resource, namespace, door, order };
                self.token_keys.load().encode(&token, scope)?
            }
            _ => String::new(),
        };
        Ok(List {
            revision: request.revision,
            remaining: remaining.filter(|_| is_exact && !continue_token.is_empty()),
            continue_token,
            items: stream::iter([Ok(page)]).boxed(),
        })
    }
}

impl Request<'_> {
    fn whole(&self, items: Items) -> List {
        List { revision: self.revision, continue_token: String::new(), remaining: None, items }
    }

    fn unfiltered(&self) -> bool {
        self.selection.labels.is_empty() && self.selection.fields.is_empty()
    }

    /// Whether the range contains all objects of the resource.
    fn is_of_all(&self) -> bool {
        self.one_namespace().is_none() && self.after.is_none()
    }

    /// The only namespace that is read, if there is just one.
    fn one_namespace(&self) -> Option<&str> {
        self.namespace.or(self.selection.namespace.as_deref())
    }

    fn range(&self) -> Range {
        let range = Range::of(self.one_namespace());
        match &self.after {
            Some(after) => range.after(&after.namespace, &after.name),
            None => range,
        }
    }

    fn scan(&self) -> Scan {
        let after = self.after.as_ref().map(|key| (key.namespace.as_str().into(), key.name.as_str().into()));
        let namespace = self.one_namespace().map(Into::into);
        Scan { namespace, after, ..Scan::all(self.resource.id) }
    }

    /// How many items follow a page of `taken` items, if the token told. Without selectors only, since otherwise the
    /// count is wrong.
    fn remaining_after(&self, taken: usize) -> Option<u64> {
        self.remaining.filter(|_| self.unfiltered()).map(|all| all.saturating_sub(taken as u64))
    }
}

pub(super) fn object(row: storage::Row) -> Arc<Object> {
    let draft = Draft::parse(&row.namespace, &row.name, row.value);
    Arc::new(draft.into_object(row.revision))
}
