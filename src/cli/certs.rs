//! `rowplane certs`: certificates of a cluster's servers, of its other programs and of its administrators.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::{Timestamp, Unit};

use super::error::Error;
use super::output::OutputArgs;
use super::table::aligned;
use crate::api::services::Network;
use crate::auth::pki::{
    CLUSTER_CERTIFICATES, ClusterCertificate, ClusterFiles, Issued, Renewal, ServingNames,
};
use crate::server;
use crate::server::hostname::hostname;
use crate::tree::{Value, json};

/// The name for several certificates: in `issue` all but `super-admin`, which may do everything; in `renew` those that
/// are there.
const ALL: &str = "all";
const SUPER_ADMIN: &str = "super-admin";

#[derive(Debug, Subcommand)]
pub enum CertsCommand {
    /// Issue certificates, and the CA at first need. Files that exist are kept
    Issue(IssueArgs),
    /// List the certificates that are there, and when they end
    List(ListArgs),
    /// Issue certificates that are there again, for the same keys or new ones
    Renew(RenewArgs),
}

#[derive(Clone, Debug, Args)]
pub struct FilesArgs {
    /// The data directory of the servers, whose pki directory has their CA
    #[arg(long, env = "ROWPLANE_DATA_DIR", value_name = "DIR", default_value = "./rowplane-data")]
    data_dir: PathBuf,
    /// The directory of certificates and keys [default: pki in the data directory]
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    /// The directory of kubeconfigs [default: the data directory]
    #[arg(long, value_name = "DIR")]
    kubeconfig_dir: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Debug, Args)]
pub struct CaArgs {
    /// The certificate of the CA in PEM, which has to exist [default: that of the data directory, made at first need]
    #[arg(long, value_name = "FILE", requires = "ca_key")]
    ca_cert: Option<PathBuf>,
    /// The key of --ca-cert in PEM, which no server needs
    #[arg(long, value_name = "FILE", requires = "ca_cert")]
    ca_key: Option<PathBuf>,
}

/// The names of a server in its certificate.
#[derive(Clone, Debug, Args)]
pub struct ServingArgs {
    /// More host names and IP addresses for the certificate apiserver, which has this host's name and those by which
    /// Pods know a server
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    tls_san: Vec<String>,
    /// The servers' --service-cluster-ip-range, whose first address is in the certificate apiserver
    #[arg(long, value_name = "CIDR", value_delimiter = ',', default_value = "10.0.0.0/24", value_parser = network)]
    service_cluster_ip_range: Vec<Network>,
}

#[derive(Clone, Debug, Args)]
pub struct IssueArgs {
    /// The certificates to issue; all stands for everything but super-admin
    #[arg(value_name = "NAME", required = true, value_parser = PossibleValuesParser::new(names(|_| true)))]
    names: Vec<String>,
    /// The URL of the API server in kubeconfigs
    #[arg(long, value_name = "URL", default_value = "https://127.0.0.1:6443")]
    server: String,
    #[command(flatten)]
    serving: ServingArgs,
    #[command(flatten)]
    ca: CaArgs,
    #[command(flatten)]
    files: FilesArgs,
}

#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    files: FilesArgs,
}

#[derive(Clone, Debug, Args)]
pub struct RenewArgs {
    /// The certificates to renew; all stands for those that are there
    #[arg(value_name = "NAME", required = true, value_parser = PossibleValuesParser::new(names(is_renewable)))]
    names: Vec<String>,
    /// Make new keys
    #[arg(long)]
    new_key: bool,
    #[command(flatten)]
    ca: CaArgs,
    #[command(flatten)]
    files: FilesArgs,
}

/// Does what is asked for, and lists the certificates that it was about.
pub fn run(command: CertsCommand) -> Result<(), Error> {
    let now = SystemTime::now();
    match command {
        CertsCommand::Issue(IssueArgs { names, server, serving, ca, files }) => {
            let places = ClusterFiles { names: serving.names(), ..files.places(Some(ca)) };
            let chosen = chosen(&names, |one| one.name != SUPER_ADMIN);
            let issued = chosen.map(|one| places.issue(one, &server, now));
            show(issued.collect::<Result<_, _>>(), files.output)
        }
        CertsCommand::List(ListArgs { files }) => {
            let places = files.places(None);
            let found = CLUSTER_CERTIFICATES.iter().filter_map(|one| places.find(one).transpose());
            show(found.collect::<Result<_, _>>(), files.output)
        }
        CertsCommand::Renew(RenewArgs { names, new_key, ca, files }) => {
            let places = files.places(Some(ca));
            let with = if new_key { Renewal::NewKey } else { Renewal::SameKey };
            let is_there = |one: &_| is_renewable(one) && !matches!(places.find(one), Ok(None));
            let chosen = chosen(&names, is_there);
            let renewed = chosen.map(|one| places.renew(one, with, now));
            show(renewed.collect::<Result<_, _>>(), files.output)
        }
    }
}

fn names(is_possible: fn(&ClusterCertificate) -> bool) -> Vec<&'static str> {
    let possible = CLUSTER_CERTIFICATES.iter().filter(|one| is_possible(one));
    possible.map(|one| one.name).chain([ALL]).collect()
}

fn is_renewable(one: &ClusterCertificate) -> bool {
    one.form.is_renewable()
}

/// The certificates that are named, and those that `all` stands for.
fn chosen(
    names: &[String],
    is_of_all: impl Fn(&ClusterCertificate) -> bool,
) -> impl Iterator<Item = &'static ClusterCertificate> {
    let is_chosen = move |one: &&ClusterCertificate| {
        names.iter().any(|name| name == one.name || (name == ALL && is_of_all(one)))
    };
    CLUSTER_CERTIFICATES.iter().filter(is_chosen)
}

impl ServingArgs {
    fn names(self) -> ServingNames {
        let services = self.service_cluster_ip_range.first().map(|network| network.first().to_string());
        let extra = self.tls_san.into_iter().chain(services).collect();
        ServingNames { hostname: hostname(), extra, ..ServingNames::local() }
    }
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| format!("{text:?} is no network with room"))
}

impl FilesArgs {
    fn places(&self, ca: Option<CaArgs>) -> ClusterFiles {
        let own_ca_dir = self.data_dir.join("pki");
        ClusterFiles {
            ca: ca.and_then(|ca| ca.ca_cert.zip(ca.ca_key)),
            dir: self.cert_dir.clone().unwrap_or_else(|| own_ca_dir.clone()),
            kubeconfig_dir: self.kubeconfig_dir.clone().unwrap_or_else(|| self.data_dir.clone()),
            own_ca_dir,
            names: ServingNames::local(),
        }
    }
}

fn show(found: Result<Vec<Issued>, crate::auth::pki::Error>, output: OutputArgs) -> Result<(), Error> {
    let found = found.map_err(|error| Error::Server(server::Error::Pki(error)))?;
    let end = |one: &Issued| {
        let end = Timestamp::try_from(one.certificate.as_ref()?.until).unwrap_or(Timestamp::MAX);
        Some(end.round(Unit::Second).unwrap_or(end).to_string())
    };
    let value = |one: &Issued| {
        let certificate = one.certificate.as_ref();
        json!({
            "name": one.name, "file": one.path.display().to_string(), "notAfter": end(one), "written": one.is_new,
            "subject": certificate.map(|one| &*one.subject), "issuer": certificate.map(|one| &*one.issuer),
        })
    };
    let values = Value::Array(found.iter().map(value).collect());
    output.print(&values, |_| {
        let heading = ["NAME", "ENDS", "SUBJECT", "ISSUER", "WRITTEN", "FILE"].map(str::to_owned);
        let row = |one: &Issued| {
            let of = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let [subject, issuer] = match &one.certificate {
                Some(certificate) => {
                    [&certificate.subject, &certificate.issuer].map(|name| Some(name.clone()))
                }
                None => [None, None],
            };
            let written = if one.is_new { "now" } else { "before" }.to_owned();
            [
                one.name.to_owned(),
                of(end(one)),
                of(subject),
                of(issuer),
                written,
                one.path.display().to_string(),
            ]
        };
        aligned(&[heading].into_iter().chain(found.iter().map(row)).collect::<Vec<_>>())
    })
}
