//! `rowplane certs`: client certificates of a cluster's other programs and of its administrators.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use jiff::{Timestamp, Unit};

use super::error::Error;
use super::output::OutputArgs;
use super::table::aligned;
use crate::auth::pki::{CLUSTER_CERTIFICATES, ClusterCertificate, ClusterFiles, Issued, Renewal};
use crate::server;
use crate::tree::{Value, json};

/// The name for several certificates: in `issue` all but `super-admin`, which may do everything; in `renew` those that are there.
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

#[derive(Clone, Debug, Args)]
pub struct NamesArgs {
    /// The certificates; all stands for every one but super-admin, and in a renewal for those that are there
    #[arg(value_name = "NAME", required = true, value_parser = PossibleValuesParser::new(names()))]
    names: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct IssueArgs {
    #[command(flatten)]
    names: NamesArgs,
    /// The URL of the API server in kubeconfigs
    #[arg(long, value_name = "URL", default_value = "https://127.0.0.1:6443")]
    server: String,
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
    #[command(flatten)]
    names: NamesArgs,
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
        CertsCommand::Issue(IssueArgs { names, server, ca, files }) => {
            let places = files.places(Some(ca));
            let chosen = names.chosen(|one| one.name != SUPER_ADMIN);
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
            let chosen = names.chosen(|one| !matches!(places.find(one), Ok(None)));
            let renewed = chosen.map(|one| places.renew(one, with, now));
            show(renewed.collect::<Result<_, _>>(), files.output)
        }
    }
}

fn names() -> Vec<&'static str> {
    CLUSTER_CERTIFICATES.iter().map(|one| one.name).chain([ALL]).collect()
}

impl NamesArgs {
    /// The certificates that are named, and those that `all` stands for.
    fn chosen(
        &self,
        is_of_all: impl Fn(&ClusterCertificate) -> bool,
    ) -> impl Iterator<Item = &'static ClusterCertificate> {
        let is_chosen = move |one: &&ClusterCertificate| {
            self.names.iter().any(|name| name == one.name || (name == ALL && is_of_all(one)))
        };
        CLUSTER_CERTIFICATES.iter().filter(is_chosen)
    }
}

impl FilesArgs {
    fn places(&self, ca: Option<CaArgs>) -> ClusterFiles {
        let own_ca_dir = self.data_dir.join("pki");
        ClusterFiles {
            ca: ca.and_then(|ca| ca.ca_cert.zip(ca.ca_key)),
            dir: self.cert_dir.clone().unwrap_or_else(|| own_ca_dir.clone()),
            kubeconfig_dir: self.kubeconfig_dir.clone().unwrap_or_else(|| self.data_dir.clone()),
            own_ca_dir,
        }
    }
}

fn show(found: Result<Vec<Issued>, crate::auth::pki::Error>, output: OutputArgs) -> Result<(), Error> {
    let found = found.map_err(|error| Error::Server(server::Error::Pki(error)))?;
    let end = |one: &Issued| {
        let end = Timestamp::try_from(one.until).unwrap_or(Timestamp::MAX);
        end.round(Unit::Second).unwrap_or(end).to_string()
    };
    let value = |one: &Issued| {
        json!({
            "name": one.name, "file": one.path.display().to_string(), "notAfter": end(one), "written": one.is_new,
        })
    };
    let values = Value::Array(found.iter().map(value).collect());
    output.print(&values, |_| {
        let heading = ["NAME", "ENDS", "WRITTEN", "FILE"].map(str::to_owned);
        let row = |one: &Issued| {
            let written = if one.is_new { "now" } else { "before" };
            [one.name.to_owned(), end(one), written.to_owned(), one.path.display().to_string()]
        };
        aligned(&[heading].into_iter().chain(found.iter().map(row)).collect::<Vec<_>>())
    })
}
