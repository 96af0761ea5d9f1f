//! The modes of impersonation, and what each asks the authorizer.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::auth::authorizer::{Attributes, Authorizer, Refusal, authorize};
use crate::auth::service_accounts;
use crate::gotext::quote;
use crate::metrics::Metrics;
use crate::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};

/// The number of groups or extra values from which on a check of `*`, for all of them, comes first.
const MANY: usize = 4;
const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";
const GROUP: &str = "authentication.k8s.io";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The Node on which a service account's Pod runs.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Users that are neither Nodes nor service accounts.
    UserInfo,
    /// The oldest mode, which asks for the name alone.
    Legacy,
}

impl Mode {
    pub const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    pub fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "legacy",
        }
    }

    /// The verb of the checks that concern the wanted user.
    fn verb(self) -> &'static str {
        match self {
            Self::AssociatedNode => "impersonate:associated-node",
            Self::ArbitraryNode => "impersonate:arbitrary-node",
            Self::ServiceAccount => "impersonate:serviceaccount",
            Self::UserInfo => "impersonate:user-info",
            Self::Legacy => "impersonate",
        }
    }

    /// The mode's name in the audit log; `None` for the mode that is not constrained.
    pub fn constraint(self) -> Option<&'static str> {
        (self != Self::Legacy).then(|| self.verb())
    }

    pub fn applies(self, wanted: &User, requester: &User) -> bool {
        let is_name_alone = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_of(&wanted.name);
        let account = service_accounts::of_user_name(&wanted.name);
        match self {
            Self::AssociatedNode => is_name_alone && node.is_some() && is_on_node(requester, node),
            Self::ArbitraryNode => is_name_alone && node.is_some(),
            Self::ServiceAccount => is_name_alone && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

/// Whether a requester is a service account whose Pod runs on this Node.
fn is_on_node(requester: &User, node: Option<&str>) -> bool {
    let names = requester.extra.get(NODE_NAME).map_or(&[][..], Vec::as_slice);
    let own = if let [one] = names { Some(one.as_str()) } else { None };
    service_accounts::of_user_name(&requester.name).is_some() && own == node
}

/// The Node that is this user.
fn node_of(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| is_subdomain(name))
}

pub fn is_subdomain(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| inner(*byte))
            && bytes.last().is_some_and(|byte| inner(*byte))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The checks of a mode for one request.
pub struct Checks<'a> {
    pub mode: Mode,
    pub wanted: &'a User,
    /// The attributes of the request.
    pub attributes: &'a Attributes<'a>,
    pub authorizer: &'a dyn Authorizer,
    pub metrics: &'a Metrics,
}

impl Checks<'_> {
    /// The user to act as.
    pub async fn run(&self) -> Result<User, Refusal> {
        let stand_in;
        let requester = match self.mode {
            Mode::AssociatedNode => {
                stand_in = without_values(self.attributes.user);
                &stand_in
            }
            _ => self.attributes.user,
        };
        if self.mode != Mode::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), self.attributes.verb);
            self.check(&Attributes { user: requester, verb: &verb, ..*self.attributes }).await?;
        }
        let mut user = self.wanted.clone();
        self.check_name(requester, &mut user).await?;
        if !self.wanted.uid.is_empty() {
            self.check(&self.about(requester, GROUP, "uids", &self.wanted.uid)).await?;
        }
        self.check_groups(requester).await?;
        self.check_extra(requester).await?;
        let group = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !user.is_in(group) && !user.is_in(UNAUTHENTICATED) {
            user.groups.push(group.to_owned());
        }
        Ok(user)
    }

    async fn check(&self, attributes: &Attributes<'_>) -> Result<(), Refusal> {
        let began = Instant::now();
        let decided = authorize(self.authorizer, attributes).await;
        let decision = if decided.is_ok() { "allowed" } else { "denied" };
        self.metrics.impersonation_authorized(self.mode.name(), decision, began.elapsed());
        decided.map(drop)
    }

    fn about<'a>(
        &self,
        requester: &'a User,
        group: &'a str,
        resource: &'a str,
        name: &'a str,
    ) -> Attributes<'a> {
        let verb = self.mode.verb();
        Attributes { group, version: "v1", resource, name, ..Attributes::of_path(requester, verb, "") }
    }

    /// The group of users and groups.
    fn group(&self) -> &'static str {
        if self.mode == Mode::Legacy { "" } else { GROUP }
    }

    async fn check_name(&self, requester: &User, user: &mut User) -> Result<(), Refusal> {
        let wanted = self.wanted;
        let mut asked = self.about(requester, self.group(), "users", &wanted.name);
        if let Some(node) = node_of(&wanted.name).filter(|_| self.mode != Mode::Legacy) {
            asked.resource = "nodes";
            asked.name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = service_accounts::of_user_name(&wanted.name) {
            (asked.resource, asked.namespace, asked.name) = ("serviceaccounts", namespace, name);
            if wanted.groups.is_empty() {
                user.groups = service_accounts::groups(namespace);
            }
        }
        self.check(&asked).await
    }

    async fn check_groups(&self, requester: &User) -> Result<(), Refusal> {
        let groups = &self.wanted.groups;
        let asked = |name| self.about(requester, self.group(), "groups", name);
        if self.mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                return Err(asked("")
                    .forbidden("impersonating the empty string group is not allowed")
                    .into());
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(asked(MASTERS).forbidden(why).into());
            }
            if groups.len() >= MANY && self.check(&asked("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.check(&asked(group)).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, requester: &User) -> Result<(), Refusal> {
        let extra = &self.wanted.extra;
        let asked =
            |key, value| Attributes { subresource: key, ..self.about(requester, GROUP, "userextras", value) };
        if extra.is_empty() {
            return Ok(());
        }
        if self.mode != Mode::Legacy {
            check_fields(extra).map_err(|why| Refusal::from(asked("", "").forbidden(&why)))?;
            let values: usize = extra.values().map(Vec::len).sum();
            if values.max(extra.len()) >= MANY && self.check(&asked("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.check(&asked(key, value)).await?;
            }
        }
        Ok(())
    }
}

/// The requester without what differs from Node to Node.
fn without_values(requester: &User) -> User {
    let keys = requester.extra.keys().cloned().collect();
    User { extra: BTreeMap::from([(NODE_KEYS.to_owned(), keys)]), ..requester.clone() }
}

fn check_fields(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let is_prefixed =
            key.split_once('/').is_some_and(|(domain, path)| is_subdomain(domain) && !path.is_empty());
        if !is_prefixed {
            let key = quote(key);
            return Err(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key}: must be a domain-prefixed path (such as \"acme.io/foo\")"
            ));
        }
        if key.chars().any(char::is_uppercase) {
            let key = quote(key);
            return Err(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    Ok(())
}
