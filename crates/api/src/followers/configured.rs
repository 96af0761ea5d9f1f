//! A row that nobody serves, and that stands for the configuration of admission. Every write of a webhook configuration,
//! a policy or a binding writes the row in its own commit, and every write that webhooks and policies see requires the
//! row to be as its admission has seen it. So whatever is committed after a configuration has been judged by it, on
//! whichever server. The row is absent until something is configured.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::cache::State;
use crate::cache::hidden_rows::HiddenRows;
use crate::revision::Revision;
use crate::storage::Requirement;

/// The group of what configures admission.
pub const GROUP: &str = "admissionregistration.k8s.io";
const NAME: &str = "all";

/// The row as this server has seen it.
pub struct Configured {
    pub rows: HiddenRows,
    newest: ArcSwapOption<Seen>,
}

struct Seen {
    /// The revision at which the resource of the row changed last.
    changed: Revision,
    requirement: Arc<Requirement>,
}

impl Configured {
    pub fn new(rows: HiddenRows) -> Self {
        Self { rows, newest: ArcSwapOption::empty() }
    }

    /// The requirement of a write whose plugins are asked by this state, or by newer ones. All writes share it.
    pub fn requirement(&self, state: &State) -> Arc<Requirement> {
        let changed = state.changed(self.rows.id()).unwrap_or_default();
        if let Some(seen) = &*self.newest.load()
            && seen.changed == changed
        {
            return seen.requirement.clone();
        }
        let requirement = Arc::new(self.rows.as_followed(state, "", NAME));
        if requirement.expect != self.rows.as_seen(state, "", NAME).expect {
            return requirement;
        }
        self.newest.store(Some(Arc::new(Seen { changed, requirement: requirement.clone() })));
        requirement
    }
}
