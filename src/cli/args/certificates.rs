//! The flags about controllers of CertificateSigningRequests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::positive_duration;
use crate::auth::signing::{API_CLIENTS, KUBELET_CLIENTS, KUBELET_SERVERS, LEGACY};
use crate::server::config::CertificateControllers;

const APPROVING: &str = "csrapproving";
const SIGNING: &str = "csrsigning";
const CLEANING: &str = "csrcleaner";

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller flags")]
pub struct CertificateArgs {
    /// The certificate controllers to run: csrapproving approves CertificateSigningRequests of kubelets, csrsigning signs
    /// approved ones, csrcleaner deletes old ones [default: none]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new([APPROVING, SIGNING, CLEANING]))]
    controllers: Vec<String>,

    /// The PEM file with the CA certificate by which csrsigning issues certificates for every signer [default: the CA of the
    /// data directory]
    #[arg(long, value_name = "FILE", requires = "cluster_signing_key_file")]
    cluster_signing_cert_file: Option<PathBuf>,

    /// The PEM file with the private key of --cluster-signing-cert-file
    #[arg(long, value_name = "FILE", requires = "cluster_signing_cert_file")]
    cluster_signing_key_file: Option<PathBuf>,

    #[command(flatten)]
    own: SignerFiles,

    /// The maximum validity of certificates issued by csrsigning; a CertificateSigningRequest may ask for less by
    /// spec.expirationSeconds
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = positive_duration)]
    cluster_signing_duration: Duration,
}

/// Signers that may have a CA of their own, with the part of their flags' names.
const SIGNERS: [(&str, &str); 4] = [
    ("kubelet-serving", KUBELET_SERVERS),
    ("kubelet-client", KUBELET_CLIENTS),
    ("kube-apiserver-client", API_CLIENTS),
    ("legacy-unknown", LEGACY),
];

/// Certificates and keys of single signers' CAs, by signer. Once one signer has a CA of its own, the others sign only
/// with theirs.
#[derive(Clone, Debug)]
struct SignerFiles(BTreeMap<&'static str, (PathBuf, PathBuf)>);

impl SignerFiles {
    fn flags(part: &str) -> [String; 2] {
        ["cert", "key"].map(|file| format!("cluster-signing-{part}-{file}-file"))
    }
}

impl Args for SignerFiles {
    fn augment_args(command: Command) -> Command {
        let file = |name: &str, help: String| {
            let flag = Arg::new(name.to_owned()).long(name.to_owned()).value_name("FILE").help(help);
            flag.value_parser(value_parser!(PathBuf))
        };
        SIGNERS.iter().fold(command, |command, (part, signer)| {
            let [certificate, key] = Self::flags(part);
            let help = format!(
                "The PEM file with the CA certificate for the signer {signer}. Signers without a file of their own issue \
                 nothing then, and --cluster-signing-cert-file must not be set"
            );
            let of_all = "cluster_signing_cert_file";
            let certificate_flag = file(&certificate, help).requires(&key).conflicts_with(of_all);
            let key_flag = file(&key, format!("The PEM file with the private key of --{certificate}")).requires(&certificate);
            command.arg(certificate_flag).arg(key_flag)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SignerFiles {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let pair = |part| {
            let [certificate, key] = Self::flags(part).map(|flag| matches.get_one::<PathBuf>(&flag).cloned());
            certificate.zip(key)
        };
        Ok(Self(SIGNERS.iter().filter_map(|(part, signer)| Some((*signer, pair(part)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
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
            authorities: self.own.0,
            longest: self.cluster_signing_duration,
        }
    }
}
