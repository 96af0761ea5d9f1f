//! Kinds that are requests and are never stored: reviews of tokens, identities and permissions. [`Api::review`] is the
//! entry; functions of [`Review`] check the questions and compute the answers.

mod access;
mod identity;

use crate::auth::authn::Authenticator;
use crate::auth::authorizer::Authorizer;
use crate::codec::managed;
use crate::decode::{self, Encoded};
use crate::error::Error;
use crate::request::{Hooks, Request};
use crate::tree::Value;
use crate::user::User;
use crate::{Api, ObjectMap};

impl Api {
    /// The body of the 201: the review with a status. Plugins of admission see the review, but neither webhooks nor
    /// policies do, which could lock everybody out.
    pub async fn review(
        &self,
        request: &Request<'_>,
        body: &Encoded,
        authenticator: &Authenticator,
    ) -> Result<ObjectMap, Error> {
        let request = &Request { hooks: Hooks::Pass, ..*request };
        let definition = &request.target.resource.definition;
        let review = Review::of_kind(definition.kind_name()).ok_or(Error::UnknownResource)?;
        let question = decode::object(definition, body, request.strictness())?;
        let mut action = self.complete_action(request, question).await?;
        review.check(action.object_mut()?)?;
        self.admission.validate(&mut action).await?;
        let mut question = action.take_object()?;
        managed::open(&mut question);
        let (now, Request { user, authorizer, .. }) = (self.now(), *request);
        review.answer(question, &Sources { user, authorizer, authenticator, now: &now }).await
    }
}

/// The user who asks, and the sources of the answers.
#[derive(Clone, Copy)]
struct Sources<'a> {
    user: &'a User,
    authorizer: &'a dyn Authorizer,
    authenticator: &'a Authenticator,
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

    /// Refuses what cannot be answered.
    fn check(self, question: &ObjectMap) -> Result<(), Error> {
        match self {
            Review::Token => identity::check_token(question),
            Review::SelfSubject => Ok(()),
            Review::SubjectAccess => access::check_subject(question),
            Review::LocalSubjectAccess => access::check_local(question),
            Review::SelfSubjectAccess => access::check_self(question),
            Review::SelfSubjectRules => access::check_rules(question),
        }
    }

    /// Answers a question that has been checked.
    async fn answer(self, question: ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
        match self {
            Review::Token => identity::review_token(question, sources.authenticator).await,
            Review::SelfSubject => Ok(identity::review_self(&question, sources)),
            Review::SubjectAccess | Review::LocalSubjectAccess => {
                let user = access::subject(&question);
                Ok(access::decided(question, &user, sources.authorizer).await)
            }
            Review::SelfSubjectAccess => {
                Ok(access::decided(question, sources.user, sources.authorizer).await)
            }
            Review::SelfSubjectRules => Ok(access::rules(&question, sources)),
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
