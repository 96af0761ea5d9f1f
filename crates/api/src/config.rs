//! Settings of a cluster.

pub mod namespace_contents;
pub mod service_ranges;

use std::sync::Arc;
use std::time::Duration;

use self::namespace_contents::NamespaceContents;
use crate::auth::service_accounts::Issuer;
use crate::storage::RecordWriters;

/// Settings of the verbs.
#[derive(Clone)]
pub struct Config {
    /// The shortest duration of a watch without a timeout of its own. The server chooses one between this and twice
    /// this.
    pub min_request_timeout: Duration,
    pub services: service_ranges::Config,
    /// The objects that the server puts into each namespace; `None` if that is left to kube-controller-manager.
    pub namespace_contents: Option<NamespaceContents>,
    /// Whether writes also do what kube-controller-manager does elsewhere: aggregate ClusterRoles, set the limits in the
    /// status of quotas.
    pub cluster_controllers: bool,
    /// Whether foreground and orphan deletion set the finalizers that a garbage collector takes off.
    pub garbage_collection: bool,
    /// What the history tells of those who write.
    pub record_writers: RecordWriters,
    /// Makes a name from a `generateName`, with a new random suffix at each call.
    pub generate_name: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

/// The issuer of tokens, and the audiences of tokens whose requests name none.
#[derive(Clone)]
pub struct TokenIssuing {
    pub issuer: Arc<Issuer>,
    pub audiences: Arc<[String]>,
}
