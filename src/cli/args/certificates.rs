//! The flags about controllers of CertificateSigningRequests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::positive_duration;
use crate::auth::signing::{API_CLIENTS, KUBELET_CLIENTS, KUBELET_SERVERS, LEGACY};
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

    #[command(flatten)]
    own: SignerFiles,

    /// The longest life of a certificate that csrsigning signs
    #[arg(long, env = "ROWPLANE_CLUSTER_SIGNING_DURATION", value_name = "DURATION", default_value = "8760h", value_parser = positive_duration)]
    cluster_signing_duration: Duration,
}

/// CAs of single signers. Once one of them is given, the others sign nothing without their own.
#[derive(Clone, Debug, Args)]
struct SignerFiles {
    /// The CA for kubernetes.io/kubelet-serving; with one of a single signer, the others sign only with their own
    #[arg(
        long,
        value_name = "FILE",
        requires = "cluster_signing_kubelet_serving_key_file",
        conflicts_with = "cluster_signing_cert_file"
    )]
    cluster_signing_kubelet_serving_cert_file: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cluster_signing_kubelet_serving_cert_file")]
    cluster_signing_kubelet_serving_key_file: Option<PathBuf>,
    /// The CA for kubernetes.io/kube-apiserver-client-kubelet
    #[arg(
        long,
        value_name = "FILE",
        requires = "cluster_signing_kubelet_client_key_file",
        conflicts_with = "cluster_signing_cert_file"
    )]
    cluster_signing_kubelet_client_cert_file: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cluster_signing_kubelet_client_cert_file")]
    cluster_signing_kubelet_client_key_file: Option<PathBuf>,
    /// The CA for kubernetes.io/kube-apiserver-client
    #[arg(
        long,
        value_name = "FILE",
        requires = "cluster_signing_kube_apiserver_client_key_file",
        conflicts_with = "cluster_signing_cert_file"
    )]
    cluster_signing_kube_apiserver_client_cert_file: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cluster_signing_kube_apiserver_client_cert_file")]
    cluster_signing_kube_apiserver_client_key_file: Option<PathBuf>,
    /// The CA for kubernetes.io/legacy-unknown
    #[arg(
        long,
        value_name = "FILE",
        requires = "cluster_signing_legacy_unknown_key_file",
        conflicts_with = "cluster_signing_cert_file"
    )]
    cluster_signing_legacy_unknown_cert_file: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cluster_signing_legacy_unknown_cert_file")]
    cluster_signing_legacy_unknown_key_file: Option<PathBuf>,
}

impl SignerFiles {
    /// By the names of signers.
    fn into_authorities(self) -> BTreeMap<&'static str, (PathBuf, PathBuf)> {
        let serving =
            (self.cluster_signing_kubelet_serving_cert_file, self.cluster_signing_kubelet_serving_key_file);
        let kubelets =
            (self.cluster_signing_kubelet_client_cert_file, self.cluster_signing_kubelet_client_key_file);
        let clients = (
            self.cluster_signing_kube_apiserver_client_cert_file,
            self.cluster_signing_kube_apiserver_client_key_file,
        );
        let legacy =
            (self.cluster_signing_legacy_unknown_cert_file, self.cluster_signing_legacy_unknown_key_file);
        let all = [
            (KUBELET_SERVERS, serving),
            (KUBELET_CLIENTS, kubelets),
            (API_CLIENTS, clients),
            (LEGACY, legacy),
        ];
        all.into_iter()
            .filter_map(|(signer, (certificate, key))| Some((signer, certificate.zip(key)?)))
            .collect()
    }
}

impl CertificateArgs {
    pub fn into_config(self) -> CertificateControllers {
        let runs = |name: &str| self.controllers.iter().any(|one| one == name);
        CertificateControllers {
            approving: runs(APPROVING),
            signing: runs(SIGNING),
            cleaning: runs(CLEANING),
            authority: self.cluster_signing_cert_file.zip(self.cluster_signing_key_file),
            authorities: self.own.into_authorities(),
            longest: self.cluster_signing_duration,
        }
    }
}
