//! What configures admission, as one row that nobody serves. Every write of a webhook configuration, a policy or a binding
//! writes the row in its own commit, and every write that webhooks and policies see requires the row to be as its
//! admission has seen it. So whatever is committed after a configuration has been judged by it, on whichever server. The
//! row is absent until something is configured.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::api::Api;
use crate::api::request::{Hooks, Request};
use crate::cache::State;
use crate::codec::object::Draft;
use crate::kinds::behavior::part::Part;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::schema::resource::ResourceDefinition;
use crate::storage::{Change, Expect, Key, Mutation, Requirement, ResourceId};
use crate::tree::json;

/// The group of what configures admission.
pub const GROUP: &str = "admissionregistration.k8s.io";
const ROW: (&str, &str) = ("internal.rowplane.dev", "admissionconfigurations");
const VERSION: &str = "internal.rowplane.dev/v1";
const NAME: &str = "all";
/// The revision of no row.
const NEVER: Revision = Revision(0);

/// The resource of the row.
pub fn configuration_row() -> GroupResource {
    GroupResource::new(ROW.0, ROW.1)
}

/// The row as this server has seen it.
pub struct Configured {
    resource: ResourceId,
    newest: ArcSwapOption<Seen>,
}

struct Seen {
    /// When the resource changed last.
    changed: Revision,
    requirement: Arc<Requirement>,
}

impl Configured {
    pub fn new(resource: ResourceId) -> Self {
        Self { resource, newest: ArcSwapOption::empty() }
    }

    /// What a write requires whose plugins are asked by a state, or by newer ones. All writes share it.
    fn requirement(&self, state: &State) -> Arc<Requirement> {
        let changed = state.changed(self.resource).unwrap_or(NEVER);
        if let Some(seen) = &*self.newest.load()
            && seen.changed == changed
        {
            return seen.requirement.clone();
        }
        let requires = |expect| Arc::new(Requirement { key: Key::new(self.resource, "", NAME), expect });
        let requirement = match state.get(self.resource, "", NAME).map(|row| row.revision()) {
            // In the commit of the row its configuration follows. Nobody may write by a state that ends in between.
            Some(row) if row == state.revision => return requires(Expect::At(NEVER)),
            Some(row) => requires(Expect::At(row)),
            None => requires(Expect::Absent),
        };
        self.newest.store(Some(Arc::new(Seen { changed, requirement: requirement.clone() })));
        requirement
    }
}

impl Api {
    /// What a request requires whose plugins are asked from now on; `None` if neither webhooks nor policies see it.
    pub(in crate::api::admission) fn configured_for(
        &self,
        request: &Request<'_>,
    ) -> Option<Arc<Requirement>> {
        let sees = request.hooks == Hooks::See;
        sees.then(|| self.configured.requirement(&self.cache.any()))
    }

    /// What is written with a configuration of admission; it expects the row to be as `seen` says, which the write of the
    /// configuration, coming after it, does not require any more.
    pub(in crate::api) fn changed_configuration(
        &self,
        (definition, part): (&ResourceDefinition, Part),
        seen: &mut Option<Arc<Requirement>>,
    ) -> Option<Mutation> {
        if definition.group().as_str() != GROUP || part == Part::Status {
            return None;
        }
        let own = || self.configured.requirement(&self.cache.any());
        let Requirement { key, expect } = (*seen.take().unwrap_or_else(own)).clone();
        let row = json!({"metadata": {"name": NAME}});
        let draft = Draft::of_json("", NAME, row.to_string().into());
        let change = Change::Put { uid: "".into(), stored_version: VERSION.into(), draft };
        Some(Mutation::new(key, expect, change))
    }
}
