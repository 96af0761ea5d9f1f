//! The flags about what kube-controller-manager does in other clusters.

use clap::{ArgAction, Args};

use super::certificates::CertificateArgs;
use crate::server::config::{Config, Controllers};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller flags")]
pub struct ControllerArgs {
    /// Runs the work of kube-controller-manager that needs no nodes: namespace deletion, garbage collection,
    /// ClusterRole aggregation, quota, token Secrets, type checks of policies, storage migration [default: true; as
    /// kube-apiserver: false]
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, hide_default_value = true)]
    cluster_controllers: bool,

    /// Enables foreground and orphan deletion, for which objects wait with a finalizer. If false, this server collects
    /// no garbage either
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = "Etcd flags")]
    enable_garbage_collector: bool,

    /// Creates the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` in every namespace [default: as
    /// --cluster-controllers]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    namespace_contents: Option<bool>,

    /// Maintains the ConfigMaps of kube-system that tell other API servers how this one authenticates, and that track
    /// the use of token Secrets
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    cluster_authentication: bool,

    #[command(flatten)]
    certificates: CertificateArgs,
}

impl ControllerArgs {
    pub fn apply(self, config: &mut Config) {
        config.controllers = match self.cluster_controllers {
            true => Controllers::Run,
            false => Controllers::OfServer,
        };
        config.garbage_collection = self.enable_garbage_collector;
        config.namespace_contents = self.namespace_contents.unwrap_or(self.cluster_controllers);
        config.cluster_authentication = self.cluster_authentication;
        config.certificate_controllers = self.certificates.into_config();
    }
}
