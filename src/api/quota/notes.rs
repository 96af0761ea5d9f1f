//! What quotas keep of an object beside the object itself: rows that nobody serves, which come and go with it.

use super::devices::Devices;
use super::past_grace::PastGrace;
use crate::api::{Api, ObjectMap, Target};
use crate::cache::State;
use crate::schema::resource::ResourceDefinition;
use crate::storage::{Mutation, Requirement};

/// The notes about a resource's objects in one state.
pub enum Notes<'a> {
    OfClaims(Devices<'a>),
    OfPods(PastGrace<'a>),
}

/// What a write has to do with the note about its object.
#[derive(Default)]
pub struct Noted {
    pub requires: Option<Requirement>,
    /// What is written with it or not at all.
    pub joined: Option<Mutation>,
}

impl Notes<'_> {
    pub fn written(&self, target: Target<'_>, old: Option<&ObjectMap>, new: Option<&ObjectMap>) -> Noted {
        match self {
            Self::OfClaims(devices) => Noted { joined: devices.note(target, old, new), requires: None },
            Self::OfPods(past) => past.noted(target, old, new),
        }
    }
}

impl Api {
    /// The notes about objects of a resource, if there are any.
    pub(in crate::api) fn notes<'a>(
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
