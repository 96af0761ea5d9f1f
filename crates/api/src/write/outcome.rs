//! The outcome of a write: at the store, and for its client.

use crate::Answer;
use crate::mutation::new_object::Naming;
use crate::revision::Revision;

/// The result of a write.
pub struct Modified {
    pub answer: Answer,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Unchanged,
    Created,
    Updated,
    /// The revision of the deletion; in a dry run, the object's revision.
    Deleted(Revision),
}

/// The outcome of a write at the store.
pub(crate) enum Placed {
    Done(Modified),
    /// Another write came first; seen at this revision.
    Lost {
        judged_at: Revision,
        naming: Option<Naming>,
    },
    /// A row that admission relied on has changed; seen at this revision.
    Unmet {
        judged_at: Revision,
    },
}

impl Placed {
    pub(super) fn done(answer: Answer, outcome: Outcome) -> Self {
        Self::Done(Modified { answer, outcome })
    }
}
