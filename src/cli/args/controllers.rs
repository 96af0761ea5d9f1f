//! The flags about what kube-controller-manager does in other clusters.

use clap::{ArgAction, Args};

use super::certificates::CertificateArgs;
use crate::server::config::{Config, Controllers};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller flags")]
pub struct ControllerArgs {
    /// Whether this server does what kube-controller-manager does elsewhere: empties namespaces, collects garbage, aggregates
    /// ClusterRoles, counts quotas, fills Secrets of tokens, checks the types of policies, migrates stored objects [default: true; of
    /// kube-apiserver: false]
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, hide_default_value = true)]
    cluster_controllers: bool,

    /// Whether foreground and orphan deletion wait, by a finalizer, for who collects garbage; if not, this server collects none either
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, help_heading = "Etcd flags")]
    enable_garbage_collector: bool,

    /// Whether every namespace gets its ServiceAccount `default` and its ConfigMap `kube-root-ca.crt` from this server; false
    /// leaves both to kube-controller-manager [default: as --cluster-controllers]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    namespace_contents: Option<bool>,

    /// Whether the ConfigMaps of kube-system are kept that tell other API servers how this one authenticates, and since when
    /// the use of tokens in Secrets is tracked
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
