//! The flags about what kube-controller-manager does in other clusters.

use clap::{ArgAction, Args};

use super::switch;
use crate::server::config::Controllers;

#[derive(Clone, Debug, Args)]
pub struct ControllerArgs {
    /// Whether this server does what kube-controller-manager does elsewhere: empties namespaces, collects garbage, aggregates
    /// ClusterRoles, counts quotas, fills Secrets of tokens, checks the types of policies, migrates stored objects [default: true; of
    /// kube-apiserver: false]
    #[arg(long, env = "ROWPLANE_CLUSTER_CONTROLLERS", value_name = "BOOL", default_value = "true", action = ArgAction::Set,
        hide_default_value = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    cluster_controllers: bool,

    /// Whether foreground and orphan deletion wait, by a finalizer, for who collects garbage; if not, this server collects none either
    #[arg(long, env = "ROWPLANE_ENABLE_GARBAGE_COLLECTOR", value_name = "BOOL", default_value = "true", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    enable_garbage_collector: bool,

    /// Whether every namespace gets its ServiceAccount `default` and its ConfigMap `kube-root-ca.crt` from this server; false
    /// leaves both to kube-controller-manager [default: as --cluster-controllers]
    #[arg(long, env = "ROWPLANE_NAMESPACE_CONTENTS", value_name = "BOOL", action = ArgAction::Set)]
    namespace_contents: Option<bool>,
}

/// The settings that the flags ask for.
pub struct ControllerConfig {
    pub controllers: Controllers,
    pub garbage_collection: bool,
    pub namespace_contents: bool,
}

impl ControllerArgs {
    pub fn into_config(self) -> ControllerConfig {
        ControllerConfig {
            controllers: match self.cluster_controllers {
                true => Controllers::Run,
                false => Controllers::OfServer,
            },
            garbage_collection: self.enable_garbage_collector,
            namespace_contents: self.namespace_contents.unwrap_or(self.cluster_controllers),
        }
    }
}
