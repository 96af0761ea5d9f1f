//! Managers of objects that ask for something and are not stored: reviews, bindings, evictions, requests for tokens.
//! Their senders see the managers in the answer, and webhooks in what they are asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{OneVersion, entries, put};
use crate::ObjectMap;
use crate::codec::protobuf;
use crate::patch::apply::filter::Filter;
use crate::patch::apply::managers::{Acting, Identity, Managers, Operation};
use crate::patch::apply::ownership;
use crate::patch::apply::schema::Schema;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;

/// The kinds that have been asked for, with their schemas. All are built in, so there are few.
#[derive(Default)]
pub struct Actions(Mutex<HashMap<Gvk, Arc<Action>>>);

struct Action {
    versions: OneVersion,
    zero: ObjectMap,
}

impl Action {
    fn new(kind: &Kind) -> Self {
        let zero = protobuf::decode(kind, &[]).unwrap_or_default();
        let (gvk, schema) = (kind.gvk.clone(), Schema::of(kind));
        Self {
            zero: gvk.claims().into_iter().chain(zero).collect(),
            versions: OneVersion { gvk, schema, filter: Filter::default() },
        }
    }
}

impl Actions {
    fn get(&self, kind: &Kind) -> Arc<Action> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&kind.gvk) {
            return found.clone();
        }
        let made = Arc::new(Action::new(kind));
        known.insert(kind.gvk.clone(), made.clone());
        made
    }

    /// Gives an object its manager, with the fields that its sender has set. The managers are
    /// [closed](crate::codec::managed).
    pub fn track(&self, kind: &Kind, object: &mut ObjectMap, manager: &str, subresource: &str, now: &str) {
        let action = self.get(kind);
        let sent = entries(object).and_then(|entries| Managers::decode(entries).ok()).unwrap_or_default();
        put(object, None);
        let identity = Identity {
            name: manager.to_owned(),
            operation: Operation::Update,
            api_version: kind.gvk.api_version().to_string(),
            subresource: subresource.to_owned(),
        };
        let acting = Acting { identity, now: now.to_owned() };
        let encoded = match sent.0.is_empty() {
            true => ownership::encoded_first(&action.versions, &action.zero, object, &acting),
            false => ownership::update(&action.versions, &action.zero, object, &sent, &acting)
                .unwrap_or(sent)
                .encode(),
        };
        if encoded.is_some() {
            put(object, encoded);
        }
    }
}
