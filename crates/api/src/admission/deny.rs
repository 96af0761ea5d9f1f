//! AlwaysDeny: nothing is written.

use super::{Admission, Attempt, Operation, Verdict};
use crate::request::Request;

pub(super) struct AlwaysDeny;

const WHY: &str = "admission control is denying all modifications";

impl Admission for AlwaysDeny {
    fn handles(&self, _: Operation, _: &Request<'_>) -> bool {
        true
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(Err(attempt.refused(WHY)))
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(Err(attempt.refused(WHY)))
    }
}
