//! CustomResourceDefinitions as a server knows them.

pub mod known;
pub mod past;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Mutex;

use self::known::Known;
use self::past::PastGenerations;
use crate::cache::follower::Position;
use crate::cache::hidden_rows::HiddenRows;
use crate::catalog::Served;
use crate::resource::Resource;
use crate::schema::builtin;
use crate::schema::names::Gvr;
use crate::schema::structural::Schemas;
use crate::storage::{Expect, Key, Requirement, ResourceId};

const DEFINITIONS: Gvr = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");

/// The definitions as a server knows them.
pub struct Definitions {
    /// The store's number of CustomResourceDefinitions; `None` if they are not served.
    pub resource: Option<ResourceId>,
    pub names: HiddenRows,
    /// The state that the served generation shows.
    pub shown: Position,
    pub known: Mutex<Known>,
    pub schemas: Schemas,
    pub past: PastGenerations,
    inheritance: Inheritance,
}

/// The part of a server's definitions that its forks take over: what is compiled once is shared by all.
#[derive(Clone, Default)]
pub struct Inheritance {
    numbers: SchemaNumbers,
    known: Known,
}

/// The numbers of structural schemas. A cluster and its forks share them, since they share objects, and an object notes the
/// number of the schema that it conforms to.
#[derive(Clone)]
struct SchemaNumbers(Arc<AtomicU32>);

impl Default for SchemaNumbers {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }
}

impl Definitions {
    pub fn new(built_in: &Served, names: HiddenRows, inheritance: Inheritance) -> Self {
        Self {
            resource: built_in.get(&DEFINITIONS).map(|resource| resource.id),
            names,
            shown: Position::default(),
            known: Mutex::default(),
            schemas: Schemas::new(builtin::types()),
            past: PastGenerations::default(),
            inheritance,
        }
    }

    /// The requirement that no definition of this name is stored; `None` if definitions are not served.
    pub fn is_gone(&self, name: &str) -> Option<Requirement> {
        let key = Key::new(self.resource?, "", name);
        Some(Requirement { key, expect: Expect::Absent })
    }

    /// Whether a resource is that of definitions.
    pub fn are(&self, resource: &Resource) -> bool {
        self.resource == Some(resource.id)
    }

    pub fn number(&self) -> u32 {
        self.inheritance.numbers.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The definitions of the server that this one is a fork of.
    pub fn inherited(&self) -> &Known {
        &self.inheritance.known
    }

    /// The inheritance of a fork.
    pub async fn inheritance(&self) -> Inheritance {
        Inheritance { numbers: self.inheritance.numbers.clone(), known: self.known.lock().await.clone() }
    }
}
