//! Kinds that are requests and are never stored: reviews of tokens, identities and permissions. [`Reviewer`] is the
//! entry; pure functions over [`Review`] compute the answers.

mod access;
mod identity;

use super::error::Error;
use super::{ObjectMap, fields, meta};
use crate::auth::authn::Authenticator;
use crate::auth::authorizer::Authorizer;
use crate::gotext;
use crate::schema::resource::ResourceDefinition;
use crate::tree::Value;
use crate::user::User;

/// Answers the reviews of one user.
#[derive(Clone, Copy)]
pub struct Reviewer<'a> {
    pub user: &'a User,
    pub authorizer: &'a dyn Authorizer,
    pub authenticator: &'a Authenticator,
}

impl Reviewer<'_> {
    /// The body of the 201: the review with a status. `namespace` is the one in the URL.
    pub async fn answer(
        &self,
        definition: &ResourceDefinition,
        namespace: Option<&str>,
        mut question: ObjectMap,
    ) -> Result<ObjectMap, Error> {
        let review = Review::of_kind(definition.kind_name()).ok_or(Error::UnknownResource)?;
        if namespace.is_some() || question.contains_key("metadata") {
            meta::ensure_namespace(fields::object_mut(&mut question, "metadata"), namespace)?;
        }
        if review == Review::Token {
            return identity::review_token(question, self.authenticator).await;
        }
        let now = gotext::now();
        let sources = Sources { user: self.user, authorizer: self.authorizer, now: &now };
        review.answer(question, &sources).await
    }
}

/// The user who asks, and the sources of the answers.
#[derive(Clone, Copy)]
struct Sources<'a> {
    user: &'a User,
    authorizer: &'a dyn Authorizer,
    /// RFC 3339, UTC, whole seconds.
    now: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Review {
    Token,
    SelfSubject,
    SubjectAccess,
    LocalSubjectAccess,
    SelfSubjectAccess,
    SelfSubjectRules,
}

impl Review {
    /// The review of a kind in the groups `authentication.k8s.io` and `authorization.k8s.io`.
    fn of_kind(kind: &str) -> Option<Self> {
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

    async fn answer(self, question: ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
        match self {
            Review::Token => Err(Error::UnknownResource),
            Review::SelfSubject => Ok(identity::review_self(&question, sources)),
            Review::SubjectAccess => access::review_subject(question, sources).await,
            Review::LocalSubjectAccess => access::review_local(question, sources).await,
            Review::SelfSubjectAccess => access::review_self(question, sources).await,
            Review::SelfSubjectRules => access::review_rules(&question, sources),
        }
    }
}

/// A new object of the same version and kind, with empty metadata.
fn like(question: &ObjectMap) -> ObjectMap {
    let mut answer = ObjectMap::new();
    for key in ["kind", "apiVersion"] {
        if let Some(value) = question.get(key) {
            answer.insert(key, value.clone());
        }
    }
    answer.insert("metadata", Value::Object(ObjectMap::new()));
    answer
}

#[cfg(test)]
mod tests;
