//! Questions of expressions to the authorizer. An evaluation does not wait: a question without an answer ends it, the
//! question is asked afterwards, and the evaluation is made again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::matching::Facts;
use crate::auth::authorizer::{Attributes, Decision as Decided};
use crate::expression::value::Error;
use crate::expression::{Authority, Decision, Question};
use crate::options::selector::attributes::QuerySelectors;
use crate::request::Request;
use crate::user::User;

/// The questions about one request, each of which is asked once.
#[derive(Debug)]
pub struct Asked {
    /// The question of the request itself, but for its verb.
    pub own: Question,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    answers: HashMap<Question, Decision>,
    open: Vec<Question>,
}

impl Asked {
    pub fn about(facts: &Facts<'_>) -> Self {
        let definition = &facts.resource.definition;
        let own = Question {
            group: definition.group().to_string(),
            resource: definition.plural.to_string(),
            subresource: facts.subresource.to_owned(),
            namespace: facts.namespace.to_owned(),
            name: facts.name.to_owned(),
            ..Question::default()
        };
        Self { own, known: Mutex::default() }
    }

    /// Asks what has no answer so far. Whether there was something.
    pub async fn settle(&self, request: &Request<'_>) -> bool {
        let open = std::mem::take(&mut self.known().open);
        if open.is_empty() {
            return false;
        }
        for question in open {
            let decision = ask(request, &question).await;
            self.known().answers.insert(question, decision);
        }
        true
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authority for Asked {
    fn decide(&self, question: &Question) -> Result<Decision, Error> {
        let mut known = self.known();
        if let Some(decision) = known.answers.get(question) {
            return Ok(decision.clone());
        }
        if !known.open.contains(question) {
            known.open.push(question.clone());
        }
        Err(Error::new("the authorizer has not been asked yet"))
    }
}

async fn ask(request: &Request<'_>, question: &Question) -> Decision {
    let account = question.account.as_ref().map(|(namespace, name)| service_account(namespace, name));
    let user = account.as_ref().unwrap_or(request.user);
    let selectors = QuerySelectors::of_texts(&question.field_selector, &question.label_selector);
    let attributes = match &question.path {
        Some(path) => Attributes::of_path(user, &question.verb, path),
        None => Attributes {
            group: &question.group,
            version: "*",
            resource: &question.resource,
            subresource: &question.subresource,
            namespace: &question.namespace,
            name: &question.name,
            selectors: &selectors,
            ..Attributes::of_path(user, &question.verb, "")
        },
    };
    let decision = request.authorizer.decide(&attributes).decided().await;
    let is_allowed = matches!(decision, Decided::Allow(_));
    let (Decided::Allow(reason) | Decided::Deny(reason) | Decided::NoOpinion(reason)) = decision;
    Decision { is_allowed, reason: reason.text(&attributes), error: reason.error() }
}

fn service_account(namespace: &str, name: &str) -> User {
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: groups.into(),
        ..User::default()
    }
}
