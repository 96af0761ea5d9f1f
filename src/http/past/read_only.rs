//! The rights of a user in the past: to read what he may read now, if he may also look back.

use std::sync::Arc;

use super::when::When;
use crate::auth::authorizer::{
    Answer, Attributes, Authorization, Authorizer, Decision, Given, Reason, UserRules,
};
use crate::user::User;

/// The verb that lets a user look back, beside the verb of the read.
pub const LOOK_BACK: &str = "asof";
const READS: [&str; 3] = ["get", "list", "watch"];
/// Subresources whose reads reach the present.
const OF_THE_PRESENT: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// Whether a request with this verb reads, so that it shows the past where it comes through a door.
pub fn looks_back(verb: &str) -> bool {
    READS.contains(&verb)
}

/// Answers reviews of access to the past. Requests themselves are authorized at the server's door.
pub struct ReadOnly {
    authorization: Authorization,
    refusal: Arc<Given>,
}

impl ReadOnly {
    pub fn new(authorization: Authorization, when: When) -> Self {
        let refusal = Given { text: format!("read-only: as of {when}"), error: None };
        Self { authorization, refusal: Arc::new(refusal) }
    }

    async fn may_read(&self, attributes: &Attributes<'_>) -> Decision {
        match self.authorization.decide(attributes).decided().await {
            Decision::Allow(_) => {
                let look_back = Attributes { verb: LOOK_BACK, ..*attributes };
                self.authorization.decide(&look_back).decided().await
            }
            refused => refused,
        }
    }
}

impl Authorizer for ReadOnly {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        let is_read = looks_back(attributes.verb) && !OF_THE_PRESENT.contains(&attributes.subresource);
        match attributes.is_resource() {
            true if is_read => Answer::Later(Box::pin(self.may_read(attributes))),
            false if attributes.verb == "get" => self.authorization.decide(attributes),
            _ => Answer::Now(Decision::NoOpinion(Reason::Given(self.refusal.clone()))),
        }
    }

    fn rules(&self, user: &User, namespace: &str) -> UserRules {
        let mut found = self.authorization.rules(user, namespace);
        for rule in &mut found.rules {
            match rule.verbs.iter().any(|verb| verb == "*") {
                true => rule.verbs = READS.map(str::to_owned).to_vec(),
                false => rule.verbs.retain(|verb| READS.contains(&&**verb)),
            }
        }
        found.rules.retain(|rule| !rule.verbs.is_empty());
        found
    }
}
