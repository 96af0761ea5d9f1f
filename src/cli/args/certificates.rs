//! The flags about controllers of CertificateSigningRequests.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::positive_duration;
use crate::server::config::CertificateControllers;

const APPROVING: &str = "csrapproving";
const SIGNING: &str = "csrsigning";
const CLEANING: &str = "csrcleaner";

#[derive(Clone, Debug, Args)]
pub struct CertificateArgs {
    /// Controllers of kube-controller-manager's that run in this server: csrapproving approves the certificates of kubelets
    /// that may have them, csrsigning signs approved requests, csrcleaner deletes old ones [default: none]
    #[arg(long, env = "ROWPLANE_CONTROLLERS", value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new([APPROVING, SIGNING, CLEANING]))]
    controllers: Vec<String>,

    /// The CA that csrsigning signs with [default: that of the data directory]
    #[arg(
        long,
        env = "ROWPLANE_CLUSTER_SIGNING_CERT_FILE",
        value_name = "FILE",
        requires = "cluster_signing_key_file"
    )]
    cluster_signing_cert_file: Option<PathBuf>,

    /// The key of --cluster-signing-cert-file
    #[arg(
        long,
        env = "ROWPLANE_CLUSTER_SIGNING_KEY_FILE",
        value_name = "FILE",
        requires = "cluster_signing_cert_file"
    )]
    cluster_signing_key_file: Option<PathBuf>,

    /// The longest life of a certificate that csrsigning signs
    #[arg(long, env = "ROWPLANE_CLUSTER_SIGNING_DURATION", value_name = "DURATION", default_value = "8760h", value_parser = positive_duration)]
    cluster_signing_duration: Duration,
}

impl CertificateArgs {
    pub fn into_config(self) -> CertificateControllers {
        let runs = |name: &str| self.controllers.iter().any(|one| one == name);
        CertificateControllers {
            approving: runs(APPROVING),
            signing: runs(SIGNING),
            cleaning: runs(CLEANING),
            authority: self.cluster_signing_cert_file.zip(self.cluster_signing_key_file),
            longest: self.cluster_signing_duration,
        }
    }
}
