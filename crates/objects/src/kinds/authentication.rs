//! The group `authentication.k8s.io`. Its objects are requests that are answered and never stored.

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "authentication.k8s.io",
    priority: 17_700,
    versions: &[Version { name: "v1", kinds: &[&SELF_SUBJECT_REVIEW, &TOKEN_REVIEW] }],
};

pub static SELF_SUBJECT_REVIEW: BuiltIn =
    BuiltIn::not_stored(cluster("selfsubjectreviews", "SelfSubjectReview"));
pub static TOKEN_REVIEW: BuiltIn = BuiltIn::not_stored(cluster("tokenreviews", "TokenReview"));
