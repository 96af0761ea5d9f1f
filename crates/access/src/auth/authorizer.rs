//! Authorization: the attributes of a request, who decides, and the text of a refusal.
//!
//! An [`Authorizer`] allows, denies, or has no opinion. [`Authorization`] asks several of them, one after the other,
//! members of `system:masters` before all. A decision carries a [`Reason`], which becomes text only when somebody asks
//! for it: deciding allocates nothing.

mod attributes;
mod authorization;
pub mod conditions;
mod foresight;
pub mod mode;
mod webhook;

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::rbac::PolicyRule;
use crate::user::User;

pub use self::attributes::{Attributes, Forbidden, NoSelectors, Operator, Requirement, Selectors};
pub use self::authorization::{AsKnown, Authorization, Member, PUBLIC_PATHS, Replaceable, is_public_path};
pub use self::foresight::{Foresight, Grant};
pub use self::mode::Mode;
pub use self::webhook::WebhookAuthorizer;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// With the reason of the authorizers.
    #[error("{forbidden}")]
    Forbidden {
        forbidden: Forbidden,
        reason: String,
        /// Whether somebody has denied it, and not just nobody allowed it.
        is_denied: bool,
    },
    /// Nobody has allowed it, and somebody could not say, with the error.
    #[error("{0}")]
    Failed(String),
}

impl From<Forbidden> for Refusal {
    fn from(forbidden: Forbidden) -> Self {
        Self::Forbidden { forbidden, reason: String::new(), is_denied: false }
    }
}

/// The decision of an [`Authorizer`].
#[derive(Clone, Debug)]
pub enum Decision {
    Allow(Reason),
    Deny(Reason),
    /// The next authorizer decides.
    NoOpinion(Reason),
}

/// Why an authorizer has decided as it has. Sent to the client of a refused request, and to whoever audits.
#[derive(Clone, Debug, Default)]
pub enum Reason {
    #[default]
    None,
    Fixed(&'static str),
    Given(Arc<Given>),
    Explained(Arc<dyn Explain>),
    /// The reasons of authorizers that had no opinion.
    Several(Arc<[Reason]>),
    /// The reason of one of several authorizers that had no opinion, under its name.
    Named(Arc<(Arc<str>, Reason)>),
}

/// The text that an authorizer gave, such as a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub text: String,
    /// Why the authorizer could not decide.
    pub error: Option<String>,
}

/// Finds the words for a decision afterwards.
pub trait Explain: Debug + Send + Sync {
    fn explain(&self, attributes: &Attributes<'_>) -> String;
}

impl Reason {
    pub fn failed(error: impl Into<String>) -> Self {
        Self::Given(Arc::new(Given { text: String::new(), error: Some(error.into()) }))
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The reason in upstream's words; often empty.
    pub fn text(&self, attributes: &Attributes<'_>) -> String {
        match self {
            Self::None => String::new(),
            Self::Fixed(text) => (*text).to_owned(),
            Self::Given(given) => given.text.clone(),
            Self::Explained(how) => how.explain(attributes),
            Self::Several(reasons) => {
                let texts = reasons.iter().map(|reason| reason.text(attributes));
                texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
            }
            Self::Named(named) => match named.1.text(attributes) {
                text if text.is_empty() => text,
                text => format!("{}: {text}", named.0),
            },
        }
    }

    /// The error of an authorizer that could not decide; several as Go joins them.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Given(given) => given.error.clone(),
            Self::Several(reasons) => aggregate(reasons.iter().filter_map(Self::error)),
            Self::Named(named) => named.1.error(),
            Self::None | Self::Fixed(_) | Self::Explained(_) => None,
        }
    }

    /// The reason under the name of the authorizer that gave it. Errors are told without names.
    pub fn named(self, authorizer: &Arc<str>) -> Self {
        if self.is_none() { self } else { Self::Named(Arc::new((authorizer.clone(), self))) }
    }

    /// Both reasons.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, one) | (one, Self::None) => one,
            (Self::Several(reasons), other) => reasons.iter().cloned().chain([other]).collect(),
            (one, other) => [one, other].into_iter().collect(),
        }
    }
}

impl FromIterator<Reason> for Reason {
    fn from_iter<I: IntoIterator<Item = Reason>>(reasons: I) -> Self {
        Self::Several(reasons.into_iter().collect())
    }
}

/// Errors as Go's `utilerrors.Aggregate` prints them: each text once, in brackets if there are several.
pub fn aggregate(errors: impl IntoIterator<Item = String>) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        if !texts.contains(&error) {
            texts.push(error);
        }
    }
    match texts.len() {
        0 => None,
        1 => texts.pop(),
        _ => Some(format!("[{}]", texts.join(", "))),
    }
}

/// A decision, at once or after something was asked.
pub enum Answer<'a> {
    Now(Decision),
    Later(BoxFuture<'a, Decision>),
}

impl Answer<'_> {
    pub async fn decided(self) -> Decision {
        match self {
            Self::Now(decision) => decision,
            Self::Later(decision) => decision.await,
        }
    }
}

/// Decides what users may do. Called for every request: what is decided from memory is answered at once.
pub trait Authorizer: Send + Sync {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a>;

    /// The decision that the authorizer would make, and the rows it rests on, without a question about what other servers
    /// have answered.
    fn foresee(&self, _: &Attributes<'_>) -> Foresight {
        Foresight::Unknown
    }

    /// The rules of a user in a namespace, as far as this authorizer can tell.
    fn rules(&self, _: &User, _namespace: &str) -> UserRules {
        UserRules::default()
    }
}

/// The rules that apply to a user (`SelfSubjectRulesReview`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserRules {
    pub rules: Vec<PolicyRule>,
    /// Whether there may be more.
    pub incomplete: bool,
    pub errors: Vec<String>,
}

/// Fails with upstream's 403, or 500 if an authorizer failed, unless the request is allowed.
pub async fn authorize(authorizer: &dyn Authorizer, attributes: &Attributes<'_>) -> Result<Reason, Refusal> {
    let (reason, is_denied) = match authorizer.decide(attributes).decided().await {
        Decision::Allow(reason) => return Ok(reason),
        Decision::Deny(reason) => (reason, true),
        Decision::NoOpinion(reason) => (reason, false),
    };
    Err(match reason.error() {
        Some(error) => Refusal::Failed(error),
        None => {
            let reason = reason.text(attributes);
            Refusal::Forbidden { forbidden: attributes.forbidden(&reason), reason, is_denied }
        }
    })
}

/// Every user may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn decide<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
        Answer::Now(Decision::Allow(Reason::None))
    }

    fn foresee(&self, _: &Attributes<'_>) -> Foresight {
        Foresight::Allowed(Grant::default())
    }

    fn rules(&self, _: &User, _: &str) -> UserRules {
        UserRules { rules: PolicyRule::everything(), ..UserRules::default() }
    }
}

/// Nobody may do anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn decide<'a>(&'a self, _: &'a Attributes<'a>) -> Answer<'a> {
        Answer::Now(Decision::NoOpinion(Reason::Fixed("Everything is forbidden.")))
    }
}
