//! How a built-in kind is served.
//!
//! Short names, categories and subresources are those of upstream's discovery documents. Behaviour is that of
//! upstream's strategies (`pkg/registry/<group>/<kind>/strategy.go` and `storage/storage.go`).

use crate::schema::resource::{Behavior, Scope};

/// The properties in which a resource may differ from the plain one: stored in its own version, all verbs, no extras.
pub struct Definition {
    pub plural: &'static str,
    pub kind: &'static str,
    pub scope: Scope,
    pub short_names: &'static [&'static str],
    pub category: Option<&'static str>,
    pub subresources: &'static [&'static str],
    pub keeping: Keeping,
    /// Whether one DELETE may mean all objects of a collection.
    pub deletes_collection: bool,
    pub behavior: Behavior,
}

/// The place where the objects are kept.
pub enum Keeping {
    Own,
    /// Under the same plural in another apiVersion.
    SharedWith(&'static str),
    Nothing,
    /// Nowhere: they are found out when somebody reads them.
    Computed,
}

const fn plain(plural: &'static str, kind: &'static str, scope: Scope) -> Definition {
    Definition {
        plural,
        kind,
        scope,
        short_names: &[],
        category: None,
        subresources: &[],
        keeping: Keeping::Own,
        deletes_collection: true,
        behavior: Behavior {
            generation: false,
            unconditional_update: true,
            create_on_update: false,
            returns_deleted: false,
            orphans_by_default: false,
        },
    }
}

pub const fn namespaced(plural: &'static str, kind: &'static str) -> Definition {
    plain(plural, kind, Scope::Namespaced)
}

pub const fn cluster(plural: &'static str, kind: &'static str) -> Definition {
    plain(plural, kind, Scope::Cluster)
}

impl Definition {
    pub const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    pub const fn category(mut self, name: &'static str) -> Self {
        self.category = Some(name);
        self
    }

    pub const fn sub(mut self, names: &'static [&'static str]) -> Self {
        self.subresources = names;
        self
    }

    pub const fn shared(mut self, version: &'static str) -> Self {
        self.keeping = Keeping::SharedWith(version);
        self
    }

    pub const fn not_stored(mut self) -> Self {
        self.keeping = Keeping::Nothing;
        self
    }

    pub const fn computed(mut self) -> Self {
        self.keeping = Keeping::Computed;
        self
    }

    pub const fn deleted_one_by_one(mut self) -> Self {
        self.deletes_collection = false;
        self
    }

    pub const fn generation(mut self) -> Self {
        self.behavior.generation = true;
        self
    }

    pub const fn conditional(mut self) -> Self {
        self.behavior.unconditional_update = false;
        self
    }

    pub const fn creates_on_update(mut self) -> Self {
        self.behavior.create_on_update = true;
        self
    }

    pub const fn returns_deleted(mut self) -> Self {
        self.behavior.returns_deleted = true;
        self
    }

    pub const fn orphans(mut self) -> Self {
        self.behavior.orphans_by_default = true;
        self
    }
}
