//! Notes of quotas about an object: rows that nobody serves, which come and go with the object.

use super::devices::Devices;
use super::past_grace::PastGrace;
use crate::cache::State;
use crate::effects::Effects;
use crate::schema::resource::ResourceDefinition;
use crate::{Cluster, ObjectMap, Target};

/// The notes about a resource's objects in one state.
pub enum Notes<'a> {
    OfClaims(Devices<'a>),
    OfPods(PastGrace<'a>),
}

impl Notes<'_> {
    pub fn written(&self, target: Target<'_>, old: Option<&ObjectMap>, new: Option<&ObjectMap>) -> Effects {
        match self {
            Self::OfClaims(devices) => {
                let mut effects = Effects::default();
                effects.join(devices.note(target, old, new));
                effects
            }
            Self::OfPods(past) => past.noted(target, old, new),
        }
    }
}

impl Cluster {
    /// The notes about objects of a resource, if there are any.
    pub(crate) fn notes<'a>(
        &'a self,
        definition: &ResourceDefinition,
        state: &'a State,
    ) -> Option<Notes<'a>> {
        match (&**definition.group(), &*definition.plural) {
            ("", "pods") => Some(Notes::OfPods(PastGrace::new(self, state))),
            ("resource.k8s.io", "resourceclaims") => Some(Notes::OfClaims(Devices::new(self, state))),
            _ => None,
        }
    }
}
