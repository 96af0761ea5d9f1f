//! The kinds of authorizers by the names that `--authorization-mode` has for them.

use std::str::FromStr;

use crate::gotext::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Abac,
    AlwaysAllow,
    AlwaysDeny,
    Node,
    Rbac,
    Webhook,
}

/// The modes of a server that is told none: nodes by what runs on them, everybody by roles and bindings.
pub const DEFAULT: [Mode; 2] = [Mode::Node, Mode::Rbac];

impl Mode {
    /// In the order of their names.
    pub const ALL: [Mode; 6] =
        [Mode::Abac, Mode::AlwaysAllow, Mode::AlwaysDeny, Mode::Node, Mode::Rbac, Mode::Webhook];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abac => "ABAC",
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Node => "Node",
            Self::Rbac => "RBAC",
            Self::Webhook => "Webhook",
        }
    }

    /// The name of this mode's authorizer, unless it is a webhook with a name of its own.
    pub fn authorizer_name(self) -> String {
        self.as_str().to_lowercase()
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.as_str() == name);
        known.ok_or_else(|| format!("authorization-mode {} is not a valid mode", quote(name)))
    }
}

/// Reads the modes in their order; several problems are told together.
pub fn parse(names: &[&str]) -> Result<Vec<Mode>, Vec<String>> {
    let mut problems = Vec::new();
    let mut modes = Vec::new();
    for name in names {
        match name.parse() {
            Ok(mode) => modes.push(mode),
            Err(problem) => problems.push(problem),
        }
    }
    if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
        let names = names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" ");
        problems.push(format!("authorization-mode [{names}] has mode specified more than once"));
    }
    if problems.is_empty() { Ok(modes) } else { Err(problems) }
}
