//! The flags about how kubelets are reached.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;

use crate::api::kubelets::Config;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Misc flags")]
pub struct KubeletArgs {
    /// The client certificate in PEM for connections to kubelets
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    kubelet_client_certificate: Option<PathBuf>,

    /// The key of --kubelet-client-certificate in PEM
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    kubelet_client_key: Option<PathBuf>,

    /// The CAs of kubelets' serving certificates in PEM; without them, the certificates are not verified
    #[arg(long, value_name = "FILE")]
    kubelet_certificate_authority: Option<PathBuf>,

    /// The types of node addresses to use for connections to kubelets, the preferred ones first
    #[arg(long, value_name = "TYPE", value_delimiter = ',', default_values_t = Config::default().address_types)]
    kubelet_preferred_address_types: Vec<String>,

    /// The port of kubelets whose Node object has none
    #[arg(long, value_name = "PORT", default_value_t = Config::default().port)]
    kubelet_port: u16,

    /// The throughput limit of exec, attach, port-forward and upgraded proxy connections in each direction, in bytes
    /// per second; 0 means no limit
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    max_connection_bytes_per_sec: u64,
}

impl KubeletArgs {
    pub fn into_config(self) -> Config {
        Config {
            client_certificate: self.kubelet_client_certificate.zip(self.kubelet_client_key),
            authorities: self.kubelet_certificate_authority,
            address_types: self.kubelet_preferred_address_types,
            port: self.kubelet_port,
            most_bytes: NonZeroU64::new(self.max_connection_bytes_per_sec),
        }
    }
}
