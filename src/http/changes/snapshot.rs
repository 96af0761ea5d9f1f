//! The objects that come before the changes of a stream, all at one revision.

use std::sync::Arc;

use futures_util::StreamExt as _;

use super::line::Line;
use crate::api::error::Error;
use crate::api::options::list::{ListAt, ListOptions, Selection};
use crate::api::resource::Resource;
use crate::api::verbs::list::Items;
use crate::api::verbs::past::history::Changed;
use crate::http::app::App;
use crate::revision::Revision;
use crate::tree::json;

/// A resource, and the namespace to list, if it is one.
type Place = (Arc<Resource>, Option<String>);

/// The objects at a revision, of one resource after the other.
pub struct Snapshot {
    app: Arc<App>,
    at: Revision,
    places: std::vec::IntoIter<Place>,
    open: Option<(Arc<Resource>, Items)>,
}

impl Snapshot {
    pub fn new(app: Arc<App>, at: Revision, places: Vec<Place>) -> Self {
        Self { app, at, places: places.into_iter(), open: None }
    }

    /// The lines of the next objects; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Vec<Line>>, Error> {
        let Some((resource, items)) = &mut self.open else {
            let Some((resource, namespace)) = self.places.next() else { return Ok(None) };
            let options =
                ListOptions { selection: Selection::default(), at: ListAt::Exactly(self.at), limit: None };
            let list = self.app.api.list(&resource, namespace.as_deref(), options).await?;
            self.open = Some((resource, list.items));
            return Ok(Some(Vec::new()));
        };
        let Some(objects) = items.next().await else {
            self.open = None;
            return Ok(Some(Vec::new()));
        };
        let mut lines = Vec::new();
        for object in objects? {
            let mut entry = json!({"revision": object.revision().to_string(), "event": "SNAPSHOT"});
            if let Some(uid) = object.uid() {
                entry["uid"] = uid.into();
            }
            let change = Changed { entry, object: Some(resource.decode(&object)?), previous: None };
            let (namespace, name) = (object.namespace().into(), object.name().into());
            lines.push(Line { resource: resource.clone(), namespace, name, change });
        }
        Ok(Some(lines))
    }
}
