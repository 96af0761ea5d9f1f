//! Reviews of identities (`pkg/registry/authentication/{tokenreview,selfsubjectreview}`).

use super::{Sources, like};
use crate::auth::authn::{Audiences, Authenticator, TokenError};
use crate::error::Error;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

pub(super) fn check_token(question: &ObjectMap) -> Result<(), Error> {
    if fields::text(question, &["spec", "token"]).is_empty() {
        return Err(Error::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(())
}

/// Asks the whole chain of authenticators about a bearer token.
pub(super) async fn review_token(
    mut question: ObjectMap,
    authenticator: &Authenticator,
) -> Result<ObjectMap, Error> {
    let token = fields::text(&question, &["spec", "token"]).to_owned();
    let wanted = fields::items(&question, &["spec", "audiences"]).iter().filter_map(Value::as_str);
    let mut wanted: Vec<String> = wanted.map(str::to_owned).collect();
    if wanted.is_empty() {
        wanted = authenticator.audiences().to_vec();
    }
    let status = match authenticator.token(&token, &wanted).await {
        Ok(accepted) => {
            let audiences = match accepted.audiences {
                Audiences::Api => authenticator.audiences().to_vec(),
                Audiences::These(audiences) => audiences,
            };
            json!({"authenticated": true, "user": accepted.user.info(), "audiences": audiences})
        }
        Err(TokenError::Refused(why)) => json!({"user": {}, "error": why.to_string()}),
        Err(TokenError::Starting) => return Err(Error::starting()),
        Err(TokenError::Unknown(error)) => return Err(error.into()),
    };
    question.insert("status", status);
    Ok(question)
}

/// The answer to a SelfSubjectReview: the user of the request. Of the question it holds only version and kind.
pub(super) fn review_self(question: &ObjectMap, sources: &Sources<'_>) -> ObjectMap {
    let mut answer = like(question);
    answer.insert("metadata", json!({"creationTimestamp": sources.now}));
    answer.insert("status", json!({"userInfo": sources.user.info()}));
    answer
}
