//! Types in the expressions of admission policies: what is wrong with them is told to whoever writes the policy.

use super::{Concern, Judged};
use crate::admission::Verdict;
use crate::admission::dynamic::policies::type_checking;
use crate::error::Error;
use crate::schema::resource::ResourceDefinition;

pub(super) struct PolicyTypes;

impl Concern for PolicyTypes {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"validatingadmissionpolicies"
            && definition.group() == "admissionregistration.k8s.io"
    }

    fn judge<'a>(&'a self, judged: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        let Judged { attempt, new, old, .. } = judged;
        if valid.is_ok() && attempt.request.subresource.is_empty() {
            type_checking::warn(attempt, new, old);
        }
        Verdict::Now(valid)
    }
}
