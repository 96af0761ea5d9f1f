//! Reviews of identities (`pkg/registry/authentication/{tokenreview,selfsubjectreview}`).

use super::{Sources, like};
use crate::api::error::Error;
use crate::api::{ObjectMap, fields};
use crate::tree::{Value, json};
use crate::user::User;

/// The text of upstream's bearer token authenticator for invalid tokens.
const INVALID_TOKEN: &str = "invalid bearer token";

pub(super) fn review_token(mut question: ObjectMap, sources: &Sources<'_>) -> Result<ObjectMap, Error> {
    let token = fields::text(&question, &["spec", "token"]);
    if token.is_empty() {
        return Err(Error::bad_request("token is required for TokenReview in authentication"));
    }
    let status = match audiences(&question, sources).and_then(|audiences| {
        let user = (sources.authenticate)(token)?;
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
    question.insert("status", status);
    Ok(question)
}

/// The wanted audiences for which the token is valid. Tokens here name no audience, so they are valid for the server's
/// own (upstream `WrapAudienceAgnosticToken`); `None` if the client wants none of these.
fn audiences<'a>(question: &ObjectMap, sources: &Sources<'a>) -> Option<Vec<&'a str>> {
    let wanted = fields::items(question, &["spec", "audiences"]);
    if wanted.is_empty() {
        return Some(sources.audiences.to_vec());
    }
    let served = sources.audiences.iter().filter(|own| wanted.iter().any(|wanted| wanted == **own));
    Some(served.copied().collect::<Vec<_>>()).filter(|served| !served.is_empty())
}

/// Of the request only version and kind are returned.
pub(super) fn review_self(question: &ObjectMap, sources: &Sources<'_>) -> ObjectMap {
    let mut answer = like(question);
    answer.insert("metadata", json!({"creationTimestamp": sources.now}));
    answer.insert("status", json!({"userInfo": user_info(sources.user)}));
    answer
}

/// `authentication.k8s.io/v1 UserInfo`; empty parts are left out.
fn user_info(user: &User) -> Value {
    let mut info = ObjectMap::new();
    if !user.name.is_empty() {
        info.insert("username", user.name.as_str().into());
    }
    if !user.uid.is_empty() {
        info.insert("uid", user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        info.insert("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra", json!(user.extra));
    }
    Value::Object(info)
}
