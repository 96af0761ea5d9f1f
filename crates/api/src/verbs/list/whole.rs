//! Lists that are not cut into pages.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::{CHUNK, Items, Request, object};
use crate::cache::{Objects, Range};
use crate::codec::object::Object;
use crate::error::Error;
use crate::long_work::{Turn, decoding};
use crate::options::list::Selection;
use crate::resource::Resource;
use crate::storage::RowStream;

/// All items of a range, a chunk at a time. Between chunks nothing but the snapshot is kept in memory.
pub(super) fn from_memory(request: &Request<'_>, objects: Objects, range: Range) -> Items {
    let (resource, selection) = (request.resource.clone(), request.selection.clone());
    stream::unfold(Some((objects, range)), move |rest| {
        let chunk = rest.map(|(objects, range)| next_chunk(&resource, &selection, objects, range));
        async move {
            let (chunk, rest, mut turn) = chunk?;
            if turn.take(0) {
                turn.end().await;
            }
            Some((chunk, rest))
        }
    })
    .boxed()
}

/// Like [`from_memory`], from the rows of a query.
pub(super) fn from_store(request: &Request<'_>, rows: RowStream) -> Items {
    let (resource, selection) = (request.resource.clone(), Arc::new(request.selection.clone()));
    stream::unfold((rows, Turn::default()), move |(mut rows, mut turn)| {
        let (resource, selection) = (resource.clone(), selection.clone());
        async move {
            let selected = |object: Arc<Object>| {
                Ok(if resource.selects(&selection, &object)? { vec![object] } else { Vec::new() })
            };
            let chunk = match rows.next().await? {
                Ok(row) => {
                    let object = object(row);
                    if turn.take(decoding(object.size())) {
                        turn.end().await;
                    }
                    selected(object)
                }
                Err(error) => Err(error.into()),
            };
            Some((chunk, (rows, turn)))
        }
    })
    .boxed()
}

type Rest = Option<(Objects, Range)>;

/// The next selected objects. The chunk is shorter than [`CHUNK`] if so few objects match that the scan's turn ends
/// before.
fn next_chunk(
    resource: &Resource,
    selection: &Selection,
    objects: Objects,
    range: Range,
) -> (Result<Vec<Arc<Object>>, Error>, Rest, Turn) {
    let (effort, mut turn) = (selection.effort(), Turn::default());
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut last = None;
    for object in objects.range(&range) {
        match resource.selects(selection, object) {
            Ok(true) => chunk.push(object.clone()),
            Ok(false) => {}
            Err(error) => return (Err(error), None, turn),
        }
        let is_over = turn.take(effort.of(object));
        if chunk.len() == CHUNK || is_over {
            last = Some(object.clone());
            break;
        }
    }
    let rest = last.map(|last| (objects, range.after_key(last.key())));
    (Ok(chunk), rest, turn)
}
