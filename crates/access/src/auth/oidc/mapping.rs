//! The user that the claims of a token name.

use std::collections::BTreeMap;

use super::expression::Expression;
use crate::auth::authn::CREDENTIAL_ID;
use crate::tree::{Map, Value};
use crate::user::User;

/// The rules by which the claims of a token become a user.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    pub username_claim: String,
    pub username_prefix: String,
    /// Empty for no groups.
    pub groups_claim: String,
    pub groups_prefix: String,
    /// Takes the place of the claim, as the two below.
    pub username_expression: Option<Expression>,
    pub groups_expression: Option<Expression>,
    /// Empty for no uid.
    pub uid_claim: String,
    pub uid_expression: Option<Expression>,
    /// By their keys.
    pub extra: Vec<(String, Expression)>,
    /// Claims that have to be there with these values.
    pub required: Vec<(String, String)>,
    /// Conditions on the claims, each with the message if it does not hold.
    pub claim_rules: Vec<(Expression, String)>,
    /// Likewise, conditions on the user.
    pub user_rules: Vec<(Expression, String)>,
}

impl Mapping {
    /// The user, or why there is none.
    pub fn user(&self, claims: &Map) -> Result<User, String> {
        let name = self.name(claims)?;
        let groups = self.groups(claims)?;
        let uid = self.uid(claims)?;
        let mut extra = BTreeMap::new();
        if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.extra {
            let failed =
                |why| format!("oidc: error evaluating extra claim expression: {}: {why}", expression.text);
            let values = expression.texts_of(claims).map_err(failed)?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        self.check_required(claims)?;
        for (rule, message) in &self.claim_rules {
            let failed = |why| format!("oidc: error evaluating claim validation expression: {why}");
            rule.holds_for_claims(claims, message).map_err(failed)?;
        }
        let user = User { name, uid, groups, extra };
        for (rule, message) in &self.user_rules {
            let failed = |why| format!("oidc: error evaluating user info validation rule: {why}");
            rule.holds_for_user(&user, message).map_err(failed)?;
        }
        Ok(user.authenticated())
    }

    fn check_required(&self, claims: &Map) -> Result<(), String> {
        for (claim, wanted) in &self.required {
            let found = claims.get(claim.as_str());
            let found =
                found.ok_or_else(|| format!("oidc: required claim {claim} not present in ID token"))?;
            let text =
                found.as_str().ok_or_else(|| format!("oidc: parse claim {claim}: {}", no_text(found)))?;
            if text != wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {text}, want = {wanted}"
                ));
            }
        }
        Ok(())
    }

    fn uid(&self, claims: &Map) -> Result<String, String> {
        if let Some(expression) = &self.uid_expression {
            let uid = expression.text_of(claims, "uid claim expression must return a string");
            return uid.map_err(|why| format!("oidc: error evaluating uid claim expression: {why}"));
        }
        match claims.get(self.uid_claim.as_str()) {
            _ if self.uid_claim.is_empty() => Ok(String::new()),
            Some(Value::String(uid)) => Ok(uid.to_string()),
            found => {
                let why = found.map_or_else(|| "claim not present".to_owned(), no_text);
                Err(format!("oidc: parse uid claim {}: {why}", crate::gotext::quote(&self.uid_claim)))
            }
        }
    }

    fn name(&self, claims: &Map) -> Result<String, String> {
        if let Some(expression) = &self.username_expression {
            let name = expression.text_of(claims, "username claim expression must return a string");
            let name =
                name.map_err(|why| format!("oidc: error evaluating username claim expression: {why}"))?;
            return match name.is_empty() {
                true => Err("oidc: empty username via CEL expression is not allowed".to_owned()),
                false => Ok(name),
            };
        }
        let claim = &self.username_claim;
        let parse =
            |why: String| format!("oidc: parse username claims {}: {why}", crate::gotext::quote(claim));
        let found = claims.get(claim.as_str()).ok_or_else(|| parse("claim not present".to_owned()))?;
        let name = found.as_str().ok_or_else(|| parse(no_text(found)))?;
        if claim == "email"
            && let Some(verified) = claims.get("email_verified")
        {
            match verified {
                Value::Bool(true) => {}
                Value::Bool(false) => return Err("oidc: email not verified".to_owned()),
                other => {
                    let kind = crate::gotext::json_kind(other);
                    return Err(format!(
                        "oidc: parse 'email_verified' claim: json: cannot unmarshal {kind} into Go value of type bool"
                    ));
                }
            }
        }
        Ok(format!("{}{name}", self.username_prefix))
    }

    fn groups(&self, claims: &Map) -> Result<Vec<String>, String> {
        if let Some(expression) = &self.groups_expression {
            let groups = expression.texts_of(claims);
            return groups.map_err(|why| format!("oidc: error evaluating group claim expression: {why}"));
        }
        let Some(found) = claims.get(self.groups_claim.as_str()).filter(|_| !self.groups_claim.is_empty())
        else {
            return Ok(Vec::new());
        };
        let prefixed = |text: &str| format!("{}{text}", self.groups_prefix);
        let texts = match found {
            Value::String(one) => vec![prefixed(one)],
            Value::Null => Vec::new(),
            other => {
                let texts = other.as_array().and_then(|items| {
                    items.iter().map(|item| item.as_str().map(prefixed)).collect::<Option<Vec<_>>>()
                });
                texts.ok_or_else(|| {
                    let claim = crate::gotext::quote(&self.groups_claim);
                    format!("oidc: parse groups claim {claim}: neither a text nor a list of texts")
                })?
            }
        };
        Ok(texts)
    }
}

/// The error of Go's decoder for another value in place of a text.
fn no_text(value: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type string", crate::gotext::json_kind(value))
}
