//! Watches on objects that only a webhook can convert.

use std::sync::Arc;

use super::{Watch, WatchEvent};
use crate::cache::event::{Event, EventType};
use crate::error::Error;

impl Watch {
    /// The synthetic events of selected objects, converted.
    pub(super) async fn converted_state(
        &self,
        events: Result<Vec<WatchEvent>, Error>,
    ) -> Result<Vec<WatchEvent>, Error> {
        let mut events = events?;
        let objects = events.iter().filter_map(|event| match event {
            WatchEvent::State(object) => Some(object.clone()),
            _ => None,
        });
        let converted = self.converter.objects(&self.resource, objects.collect()).await?;
        let needs_hook = self.scope.needs_hook(&self.resource);
        // Bookmarks stay behind the objects that they speak for.
        events.retain(|event| !matches!(event, WatchEvent::State(_)));
        let mut told = Vec::with_capacity(converted.len() + events.len());
        for object in converted {
            if !needs_hook || self.scope.holds(&self.resource, &object)? {
                told.push(WatchEvent::State(object));
            }
        }
        told.append(&mut events);
        Ok(told)
    }

    /// The events that concern the watch, converted. Where the selection needs no look at the objects, only those are
    /// converted that are shown.
    pub(super) async fn concerning_converted(
        &self,
        events: Vec<Arc<Event>>,
    ) -> Result<Vec<WatchEvent>, Error> {
        let told = if self.scope.needs_hook(&self.resource) {
            let here = events.into_iter().filter(|event| self.may_concern(event)).collect();
            self.selected(self.converter.events(&self.resource, here).await?)?
        } else {
            self.converter.shown(&self.resource, self.selected(events)?).await?
        };
        Ok(told.into_iter().map(|(event, kind)| WatchEvent::Change { event, kind }).collect())
    }

    fn may_concern(&self, event: &Event) -> bool {
        let object = event.current.as_ref().or(event.previous.as_ref());
        object.is_some_and(|object| self.scope.holds_stored(&self.resource, object).unwrap_or(true))
    }

    fn selected(&self, events: Vec<Arc<Event>>) -> Result<Vec<(Arc<Event>, EventType)>, Error> {
        let mut selected = Vec::with_capacity(events.len());
        for event in events {
            if let Some(kind) = self.scope.kind(&self.resource, &event)? {
                selected.push((event, kind));
            }
        }
        Ok(selected)
    }
}
