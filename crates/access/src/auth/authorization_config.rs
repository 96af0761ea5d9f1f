//! The file of `--authorization-config`: who decides who may do what, one after the other.

mod decode;
mod reader;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::decode::decode;
use self::reader::Reader;
use super::authorizer::conditions::Conditions;
use super::authorizer::mode::Mode;
use crate::causes::aggregate;

/// The times for which a webhook's answer counts that has allowed something, and one that has not, unless the file says
/// otherwise.
pub const AUTHORIZED_TTL: Duration = Duration::from_secs(300);
pub const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

/// One of the authorizers.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    pub mode: Mode,
    /// The name in metrics.
    pub name: String,
    /// The webhook of the mode `Webhook`; `None` in the other modes.
    pub webhook: Option<WebhookSettings>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WebhookSettings {
    /// The file with the webhook's address and credentials.
    pub kubeconfig: PathBuf,
    pub timeout: Duration,
    /// The time for which an answer counts that allows something; `None` means just once.
    pub authorized_ttl: Option<Duration>,
    pub unauthorized_ttl: Option<Duration>,
    /// The version of SubjectAccessReviews: `v1` or `v1beta1`.
    pub version: String,
    pub on_failure: OnFailure,
    /// The match conditions: the webhook is asked only about requests for which all of them hold.
    pub conditions: Conditions,
}

/// The decision if the webhook cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    NoOpinion,
    Deny,
}

impl From<Mode> for Configured {
    fn from(mode: Mode) -> Self {
        Self { mode, name: mode.authorizer_name(), webhook: None }
    }
}

/// Reads the text of the file. `required` are the modes that it may not leave out.
pub fn parse(text: &[u8], required: &[Mode]) -> Result<Vec<Configured>, String> {
    let file =
        decode(text).map_err(|why| format!("failed to load AuthorizationConfiguration from file: {why}"))?;
    let mut reader = Reader::default();
    let authorizers = reader.authorizers(&file);
    if !reader.causes.is_empty() {
        return Err(aggregate(&reader.causes));
    }
    let mut problems = Vec::new();
    for Configured { mode, name, .. } in authorizers.iter().filter(|one| one.mode != Mode::Webhook) {
        let expected = mode.authorizer_name();
        if *name != expected {
            problems
                .push(format!("expected name {expected} for authorizer {} instead of {name}", mode.as_str()));
        }
    }
    let is_missing = |mode: &&Mode| !authorizers.iter().any(|one| one.mode == **mode);
    let mut missing: Vec<&str> = required.iter().filter(is_missing).map(|mode| mode.as_str()).collect();
    missing.sort_unstable();
    if !missing.is_empty() {
        problems.push(format!("missing required types: [{}]", missing.join(" ")));
    }
    super::authorizer::aggregate(problems).map_or(Ok(authorizers), Err)
}

/// Reads the file at this path. Also returns its text.
pub fn load(path: &Path) -> Result<(Vec<Configured>, Vec<u8>), String> {
    let text = std::fs::read(path).map_err(|error| format!("open {}: {error}", path.display()))?;
    Ok((parse(&text, &[])?, text))
}
