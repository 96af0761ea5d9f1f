//! The description of a request that waits for seats or has them, for dumps.

use jiff::Timestamp;

use crate::auth::authorizer::Attributes;

/// The description of a request that waits or runs.
#[derive(Debug)]
pub struct Waiter {
    pub flow: Box<str>,
    pub distinguisher: Box<str>,
    pub arrived: Timestamp,
    pub details: [Box<str>; 8],
}

impl Waiter {
    pub fn new(
        flow: &str,
        distinguisher: &str,
        request: &Attributes<'_>,
        path: &str,
        arrived: Timestamp,
    ) -> Self {
        let version = match (request.group, request.version) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        };
        let Attributes { user, verb, namespace, name, resource, subresource, .. } = *request;
        let details = [&user.name, verb, path, namespace, name, &version, resource, subresource];
        Self {
            flow: flow.into(),
            distinguisher: distinguisher.into(),
            arrived,
            details: details.map(Box::from),
        }
    }
}
