//! What configures admission, as one row that nobody serves. Every write of a webhook configuration, a policy or a binding
//! writes the row in its own commit, and every write that webhooks and policies see requires the row to be as its
//! admission has seen it. So whatever is committed after a configuration has been judged by it, on whichever server. The
//! row is absent until something is configured.

use std::sync::{Arc, Mutex, PoisonError};

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
    /// Held by who makes another value, so that those who see the same share one.
    renewing: Mutex<()>,
}

struct Seen {
    /// When the resource changed last.
    changed: Revision,
    requirement: Arc<Requirement>,
}

impl Configured {
    pub fn new(resource: ResourceId) -> Self {
        Self { resource, newest: ArcSwapOption::empty(), renewing: Mutex::new(()) }
    }

    /// What a write requires whose plugins are asked by a state, or by newer ones. All writes share it: as long as it is the
    /// same value, neither has the row changed, nor has the state been read anew.
    fn requirement(&self, state: &State) -> Arc<Requirement> {
        let changed = state.changed(self.resource).unwrap_or(NEVER);
        let known = || {
            let newest = self.newest.load();
            let seen = newest.as_ref().filter(|seen| seen.changed == changed)?;
            Some(seen.requirement.clone())
        };
        if let Some(requirement) = known() {
            return requirement;
        }
        let _renewing = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requirement) = known() {
            return requirement;
        }
        let requires = |expect| Arc::new(Requirement { key: Key::new(self.resource, "", NAME), expect });
        let requirement = match state.get(self.resource, "", NAME).map(|row| row.revision()) {
            // In the commit of the row its configuration follows. Nobody may write by a state that ends in between.
            Some(row) if row == state.revision => return requires(Expect::At(NEVER)),
            Some(row) => requires(Expect::At(row)),
            None => requires(Expect::Absent),
        };
        // Who still has an older state does not take the newer value away from others.
        if self.newest.load().as_ref().is_none_or(|seen| seen.changed < changed) {
            self.newest.store(Some(Arc::new(Seen { changed, requirement: requirement.clone() })));
        }
        requirement
    }
}

/// What no store fulfils, about the row of a requirement. The write is tried again.
pub fn impossible(requirement: &Requirement) -> Arc<Requirement> {
    Arc::new(Requirement { key: requirement.key.clone(), expect: Expect::At(NEVER) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Objects;

    const ROWS: ResourceId = ResourceId(7);

    fn loaded(at: u64, row: Option<u64>) -> State {
        let mut state = State::at(Revision(at));
        state.load(ROWS, Objects::default());
        if let Some(revision) = row {
            put(&mut state, revision);
            state.load(ROWS, state.objects(ROWS));
        }
        state
    }

    fn put(state: &mut State, revision: u64) {
        let draft = Draft::of_json("", NAME, r#"{"metadata":{"name":"all"}}"#.as_bytes().to_vec().into());
        let object = Arc::new(draft.into_object(Revision(revision)));
        state.apply(ROWS, NAME, Revision(revision), Some(object)).expect("held");
    }

    /// The row is as it was before a failover, and yet the requirement is another one: what was seen in between is lost.
    #[test]
    fn a_requirement_is_the_same_only_while_nothing_has_changed() {
        let configured = Configured::new(ROWS);
        let mut state = loaded(9, Some(5));
        let first = configured.requirement(&state);
        assert_eq!(first.expect, Expect::At(Revision(5)));
        assert!(Arc::ptr_eq(&first, &configured.requirement(&state)));
        put(&mut state, 10);
        state.revision = Revision(11);
        let changed = configured.requirement(&state);
        assert_eq!(changed.expect, Expect::At(Revision(10)));
        let after_a_failover = configured.requirement(&loaded(1_000_010, Some(5)));
        assert_eq!(after_a_failover, first);
        assert!(!Arc::ptr_eq(&first, &after_a_failover));
        // An older state does not renew it.
        assert_eq!(configured.requirement(&state).expect, Expect::At(Revision(10)));
        assert!(Arc::ptr_eq(&after_a_failover, &configured.requirement(&loaded(1_000_010, Some(5)))));
        assert_eq!(impossible(&first).expect, Expect::At(NEVER));
    }
}
