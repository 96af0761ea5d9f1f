//! The kinds that are asked and never stored: reviews of tokens, of identities and of permissions.
//!
//! Pure: the answer is the body with a status. `metadata.namespace` is filled in from the URL already
//! ([`super::meta::ensure_namespace`]).

mod access;
mod identity;

use std::sync::Arc;

use serde_json::Value;

use super::error::Error;
use super::fields::Object;
use crate::auth::User;
use crate::auth::authorizer::Authorizer;

/// Who asks, and who knows the answers.
#[derive(Clone, Copy)]
pub struct Reviewer<'a> {
    pub user: &'a User,
    pub authorizer: &'a dyn Authorizer,
    /// The user of a bearer token, if it is anybody's.
    pub authenticate: &'a dyn Fn(&str) -> Option<Arc<User>>,
    /// For whom tokens of this server are meant (`--api-audiences`).
    pub audiences: &'a [String],
    /// RFC 3339, UTC, whole seconds.
    pub now: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    Token,
    SelfSubject,
    SubjectAccess,
    LocalSubjectAccess,
    SelfSubjectAccess,
    SelfSubjectRules,
}

impl Review {
    /// Of the groups `authentication.k8s.io` and `authorization.k8s.io`.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Some(match kind {
            "TokenReview" => Review::Token,
            "SelfSubjectReview" => Review::SelfSubject,
            "SubjectAccessReview" => Review::SubjectAccess,
            "LocalSubjectAccessReview" => Review::LocalSubjectAccess,
            "SelfSubjectAccessReview" => Review::SelfSubjectAccess,
            "SelfSubjectRulesReview" => Review::SelfSubjectRules,
            _ => return None,
        })
    }

    /// The body of the 201, in the version and kind of the question.
    pub fn answer(self, question: Object, reviewer: &Reviewer<'_>) -> Result<Object, Error> {
        match self {
            Review::Token => identity::review_token(question, reviewer),
            Review::SelfSubject => Ok(identity::review_self(&question, reviewer)),
            Review::SubjectAccess => access::review_subject(question, reviewer),
            Review::LocalSubjectAccess => access::review_local(question, reviewer),
            Review::SelfSubjectAccess => access::review_self(question, reviewer),
            Review::SelfSubjectRules => access::review_rules(&question, reviewer),
        }
    }
}

/// A fresh object of the same version and kind, with empty metadata.
fn like(question: &Object) -> Object {
    let mut answer = Object::new();
    for key in ["kind", "apiVersion"] {
        if let Some(value) = question.get(key) {
            answer.insert(key.to_owned(), value.clone());
        }
    }
    answer.insert("metadata".to_owned(), Value::Object(Object::new()));
    answer
}

#[cfg(test)]
mod tests;
