//! The group `authorization.k8s.io`. Its objects are requests that are answered and never stored.

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "authorization.k8s.io",
    priority: 17_600,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &LOCAL_SUBJECT_ACCESS_REVIEW,
            &SELF_SUBJECT_ACCESS_REVIEW,
            &SELF_SUBJECT_RULES_REVIEW,
            &SUBJECT_ACCESS_REVIEW,
        ],
    }],
};

pub static LOCAL_SUBJECT_ACCESS_REVIEW: BuiltIn =
    BuiltIn::not_stored(namespaced("localsubjectaccessreviews", "LocalSubjectAccessReview"));
pub static SELF_SUBJECT_ACCESS_REVIEW: BuiltIn =
    BuiltIn::not_stored(cluster("selfsubjectaccessreviews", "SelfSubjectAccessReview"));
pub static SELF_SUBJECT_RULES_REVIEW: BuiltIn =
    BuiltIn::not_stored(cluster("selfsubjectrulesreviews", "SelfSubjectRulesReview"));
pub static SUBJECT_ACCESS_REVIEW: BuiltIn =
    BuiltIn::not_stored(cluster("subjectaccessreviews", "SubjectAccessReview"));
