//! The arguments of `rowplane up`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Arg, Args};

use super::serve::ServeArgs;
use super::{Defaults, variable};
use crate::api::services::Network;
use crate::cli::config::{Lifetime, ServeConfig};
use crate::cli::error::Error;

/// Arguments of `rowplane up`.
#[derive(Clone, Debug, Args)]
pub struct UpArgs {
    /// The directory with the programs kube-controller-manager and kube-scheduler [default: they are found on the PATH]
    #[arg(long, value_name = "DIR", help_heading = CLUSTER)]
    components: Option<PathBuf>,

    /// The network of Pods, of which kube-controller-manager gives each Node a part [default: none, for network plugins
    /// that have networks of their own]
    #[arg(long, value_name = "CIDR", value_parser = network, help_heading = CLUSTER)]
    pod_network_cidr: Option<Network>,

    /// A flag for kube-controller-manager without its dashes, such as v=4. Can be given more than once
    #[arg(long, value_name = "FLAG=VALUE", help_heading = CLUSTER)]
    kube_controller_manager_arg: Vec<String>,

    /// A flag for kube-scheduler without its dashes. Can be given more than once
    #[arg(long, value_name = "FLAG=VALUE", help_heading = CLUSTER)]
    kube_scheduler_arg: Vec<String>,

    #[command(flatten)]
    serve: ServeArgs,
}

/// The configuration of `rowplane up`.
pub struct UpConfig {
    /// The server that is run as a child, as its flags say.
    pub serve: ServeConfig,
    pub components: Option<PathBuf>,
    pub pod_network: Option<Network>,
    /// Additional flags, without their dashes.
    pub controller_manager_flags: Vec<String>,
    pub scheduler_flags: Vec<String>,
}

const CLUSTER: &str = "Cluster flags";
/// The flags of `rowplane up` that `rowplane serve` does not have; each takes a value.
const OWN: [&str; 4] =
    ["components", "pod-network-cidr", "kube-controller-manager-arg", "kube-scheduler-arg"];
/// The flags of `rowplane serve` that `rowplane up --help` shows; it takes all of them.
const SHOWN: [&str; 9] = [
    "data-dir",
    "datastore",
    "bind-address",
    "secure-port",
    "advertise-address",
    "tls-san",
    "service-cluster-ip-range",
    "audit-policy-file",
    "v",
];
/// The defaults of the server's flags that suit a cluster with nodes.
pub const DEFAULTS: [(&str, &str); 5] = [
    ("bind-address", "0.0.0.0"),
    ("cluster-controllers", "false"),
    ("enable-bootstrap-token-auth", "true"),
    ("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"),
    ("service-cluster-ip-range", "10.96.0.0/12"),
];

impl UpArgs {
    /// A flag of `rowplane serve` as `rowplane up` takes it.
    pub fn flag(flag: Arg) -> Arg {
        let Some(name) = flag.get_long().map(str::to_owned) else { return flag };
        let is_shown = SHOWN.contains(&name.as_str()) || OWN.contains(&name.as_str());
        let flag = flag.hide(!is_shown).hide_short_help(false);
        match DEFAULTS.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => flag.default_value(*value),
            None => flag,
        }
    }

    pub fn into_config(self) -> Result<UpConfig, Error> {
        let serve = self.serve.into_config(Defaults::Own)?;
        let https = serve.server.https.as_ref();
        let refused = |why: &str| Err(Error::Usage(why.to_owned()));
        if serve.lifetime == Lifetime::UntilStdinEnds {
            return refused("--exit-with-stdin is for servers alone");
        }
        if https.is_some_and(|https| https.address.port() == 0) {
            return refused(
                "--secure-port=0 takes another port at each start, which the nodes would not know",
            );
        }
        if https.is_some_and(|https| https.certificates.client_ca_file.is_some()) {
            return refused(
                "--client-ca-file replaces the server's own CA, by which `rowplane up` issues certificates for the \
                 cluster's programs",
            );
        }
        if https.is_some_and(|https| https.certificates.serving.is_some()) {
            return refused(
                "--tls-cert-file replaces the certificate that the cluster's programs believe; give one for a name of \
                 its own with --tls-sni-cert-key",
            );
        }
        Ok(UpConfig {
            serve,
            components: self.components,
            pod_network: self.pod_network_cidr,
            controller_manager_flags: self.kube_controller_manager_arg,
            scheduler_flags: self.kube_scheduler_arg,
        })
    }
}

/// The arguments of `rowplane serve` among those of `rowplane up`.
pub fn server_arguments(arguments: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        let flag = text.strip_prefix("--").unwrap_or_default();
        let (name, has_value) = flag.split_once('=').map_or((flag, false), |(name, _)| (name, true));
        match (OWN.contains(&name), has_value) {
            (true, true) => {}
            (true, false) => drop(rest.next()),
            (false, _) => kept.push(argument.clone()),
        }
    }
    kept
}

/// The environment by which the server gets defaults: a flag wins, and so does what is in this process's environment.
pub fn server_environment<'a>(
    defaults: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
) -> Vec<(String, OsString)> {
    let named = defaults.into_iter().map(|(flag, value)| (variable(flag), value.to_owned()));
    named.filter(|(name, _)| std::env::var_os(name).is_none()).collect()
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| format!("{text:?} is no network with room"))
}

/// The directory of certificates, the kubeconfigs and logs.
pub fn data_dir(serve: &ServeConfig) -> &Path {
    serve.server.data_dir.as_deref().unwrap_or(Path::new(super::DATA_DIR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_gets_its_flags_alone() {
        let arguments = [
            "--components",
            "x",
            "--secure-port",
            "7",
            "--kube-scheduler-arg=v=4",
            "-v",
            "2",
            "--pod-network-cidr=10.2.0.0/16",
            "--data-dir=d",
        ];
        let kept = server_arguments(&arguments.map(OsString::from));
        assert_eq!(kept, ["--secure-port", "7", "-v", "2", "--data-dir=d"]);
    }
}
