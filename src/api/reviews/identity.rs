//! Who is it? (`pkg/registry/authentication/{tokenreview,selfsubjectreview}`)

use serde_json::{Value, json};

use super::{Reviewer, like};
use crate::api::error::Error;
use crate::api::fields::{self, Object};
use crate::auth::User;

/// What upstream's bearer token authenticator says of tokens that nobody accepts.
const INVALID_TOKEN: &str = "invalid bearer token";

pub(super) fn review_token(mut question: Object, reviewer: &Reviewer<'_>) -> Result<Object, Error> {
    let token = fields::text(&question, &["spec", "token"]);
    if token.is_empty() {
        return Err(Error::bad_request("token is required for TokenReview in authentication"));
    }
    let status = match audiences(&question, reviewer).and_then(|audiences| {
        let user = (reviewer.authenticate)(token)?;
        Some((user, audiences))
    }) {
        None => json!({"user": {}, "error": INVALID_TOKEN}),
        Some((user, audiences)) => {
            let mut status = json!({"authenticated": true, "user": user_info(&user)});
            if !audiences.is_empty() {
                status["audiences"] = audiences.into();
            }
            status
        }
    };
    question.insert("status".to_owned(), status);
    Ok(question)
}

/// Those of the wanted audiences that the token serves. Tokens here know no audience, so they serve the server's own
/// (upstream `WrapAudienceAgnosticToken`); `None` if that is none of the wanted.
fn audiences(question: &Object, reviewer: &Reviewer<'_>) -> Option<Vec<String>> {
    let wanted = fields::items(question, &["spec", "audiences"]);
    if wanted.is_empty() {
        return Some(reviewer.audiences.to_vec());
    }
    let served: Vec<String> =
        reviewer.audiences.iter().filter(|own| wanted.iter().any(|w| w == own.as_str())).cloned().collect();
    Some(served).filter(|served| !served.is_empty())
}

/// Nothing of the question but its version and kind comes back.
pub(super) fn review_self(question: &Object, reviewer: &Reviewer<'_>) -> Object {
    let mut answer = like(question);
    answer.insert("metadata".to_owned(), json!({"creationTimestamp": reviewer.now}));
    answer.insert("status".to_owned(), json!({"userInfo": user_info(reviewer.user)}));
    answer
}

/// `authentication.k8s.io/v1 UserInfo`; empty parts are left out.
fn user_info(user: &User) -> Value {
    let mut info = Object::new();
    if !user.name.is_empty() {
        info.insert("username".to_owned(), user.name.as_str().into());
    }
    if !user.uid.is_empty() {
        info.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        info.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra".to_owned(), json!(user.extra));
    }
    Value::Object(info)
}
