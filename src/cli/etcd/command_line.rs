//! etcd's command line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use rowplane_etcd::engine::{self, AutoCompaction};
use rowplane_etcd::wire::Options;

use super::super::config::{LogConfig, LogFormat};
use super::super::error::Error;
use crate::gotext;
use crate::runtime::Runtime;
use crate::server::datastore::Datastore;

/// The version of etcd whose API this is.
const VERSION: &str = "3.7.1";
/// The default address of clients.
const LISTEN: &str = "http://localhost:2379";
/// The variable that names the datastore as `--datastore` does.
const DATASTORE: &str = "ROWPLANE_DATASTORE";

/// Flags with a value that count, and what they are for.
const VALUES: [(&str, &str); 20] = [
    ("advertise-client-urls", "The URLs that clients are told, by comma [default: those by which they call]"),
    ("auto-compaction-mode", "periodic or revision [default: periodic]"),
    (
        "auto-compaction-retention",
        "The age or the number of revisions that are kept; 0 keeps all [default: 1h]",
    ),
    ("cert-file", "The certificate for https URLs, in PEM"),
    ("data-dir", "The directory of the state, and of the state of rowplane as kube-apiserver, if it sees it"),
    (
        "datastore",
        "The database of the state: postgres://..., sqlite:FILE or memory: [default: a file in --data-dir]",
    ),
    ("emulated-etcd-version", "The version that clients are told [default: 3.7.1]"),
    ("grpc-keepalive-interval", "How often a silent client is asked whether it is there [default: 2h]"),
    ("grpc-keepalive-timeout", "How long its answer may take [default: 20s]"),
    ("key-file", "The private key of --cert-file, in PEM"),
    ("listen-client-urls", "The http or https URLs of clients, by comma [default: http://localhost:2379]"),
    ("listen-metrics-urls", "The http or https URLs at which only health and metrics are answered"),
    ("max-concurrent-streams", "The most calls of a connection at a time [default: 4294967295]"),
    ("max-request-bytes", "The longest request [default: 1572864]"),
    ("max-txn-ops", "The most operations of a transaction [default: 128]"),
    (
        "name",
        "The name of the member, from which --data-dir follows where it is not given [default: default]",
    ),
    (
        "quota-backend-bytes",
        "The size of the store above which nothing is put any more; 0 for none [default: 0]",
    ),
    ("trusted-ca-file", "The CAs that have to have signed the certificates of clients of https URLs"),
    (
        "watch-progress-notify-interval",
        "How often watches that ask for it are told their progress [default: 5s]",
    ),
    ("log-level", "debug, info, warn or error [default: info]"),
];
/// Booleans that count.
const SWITCHES: [(&str, &str); 2] = [
    ("client-cert-auth", "Whether clients of https URLs have to show a certificate"),
    (
        "unsafe-no-fsync",
        "Whether state need not outlive rowplane as kube-apiserver, which keeps it in memory then",
    ),
];

/// The action that a command line requests.
#[derive(Debug)]
pub enum Asked {
    Serve(Box<Config>),
    Print(String),
}

/// The flags that count.
#[derive(Debug)]
pub struct Config {
    /// The addresses of clients, each once.
    pub clients: Vec<Uri>,
    /// The addresses at which only health and metrics are answered.
    pub metrics: Vec<Uri>,
    /// The files for https URLs, if there are such URLs.
    pub tls: Option<TlsFiles>,
    pub name: String,
    pub data_dir: PathBuf,
    pub durability: Durability,
    pub datastore: Datastore,
    pub engine: engine::Config,
    pub keepalive: Keepalive,
    pub log: LogConfig,
    /// Flags that were given and have no effect.
    pub ignored: Vec<String>,
    advertised: Vec<String>,
    version: String,
    longest_request: usize,
    quota: Option<u64>,
}

/// Whether the state of a kube-apiserver beside this program has to outlive a crash of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Full,
    None,
}

/// PEM files for https URLs.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The CAs of clients, which have to show a certificate then.
    pub authorities: Option<PathBuf>,
}

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    pub interval: Duration,
    pub timeout: Duration,
    pub streams: u32,
}

impl Config {
    /// Whether the state is in the data directory, where rowplane as kube-apiserver may use it as well.
    pub fn owns_datastore(&self) -> bool {
        self.datastore == Datastore::in_data_dir(&self.data_dir)
    }

    pub fn options(&self, runtime: &Runtime) -> Options {
        Options {
            name: self.name.clone(),
            advertised: self.advertised.clone(),
            version: self.version.clone(),
            longest_request: self.longest_request,
            quota: self.quota,
            scratch: self.data_dir.clone(),
            clock: runtime.clock.clone(),
            random: runtime.random.clone(),
        }
    }
}

/// Parses `--x=y`, `--x y` and `-x y`. Flags that do not count are ignored; of a repeated one the last counts. A variable
/// `ETCD_X` stands for a flag that is not given.
pub fn parse(
    arguments: impl IntoIterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Asked, Error> {
    let (mut values, mut ignored) = (BTreeMap::<String, String>::new(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some(flag) = argument.strip_prefix('-').map(|flag| flag.trim_start_matches('-')) else {
            continue;
        };
        let (name, inline) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let known = |flags: &[(&str, &str)]| flags.iter().any(|(known, _)| *known == name);
        let value = match (name, inline) {
            ("help" | "h", _) => return Ok(Asked::Print(help())),
            ("version", _) => return Ok(Asked::Print(format!("etcd Version: {VERSION}\n"))),
            _ if !known(&VALUES) && !known(&SWITCHES) => {
                ignored.push(format!("--{name}"));
                continue;
            }
            (_, Some(value)) => value.to_owned(),
            (_, None) if known(&SWITCHES) => "true".to_owned(),
            (name, None) => {
                arguments.next().ok_or_else(|| Error::Refused(format!("flag needs an argument: --{name}")))?
            }
        };
        values.insert(name.to_owned(), value);
    }
    for (name, _) in VALUES.iter().chain(&SWITCHES) {
        let of_etcd = format!("ETCD_{}", name.to_uppercase().replace('-', "_"));
        let set = variable(&of_etcd).or_else(|| variable(DATASTORE).filter(|_| *name == "datastore"));
        if let Some(value) = set {
            values.entry((*name).to_owned()).or_insert(value);
        }
    }
    config(&values, ignored).map(|config| Asked::Serve(Box::new(config))).map_err(Error::Refused)
}

fn config(values: &BTreeMap<String, String>, ignored: Vec<String>) -> Result<Config, String> {
    let text = |name: &str| values.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let path = |name: &str| text(name).map(PathBuf::from);
    let is_set = |name: &str| match text(name) {
        Some(value) => gotext::parse_bool(value).ok_or_else(|| format!("--{name}: {value:?} is no boolean")),
        None => Ok(false),
    };
    let number = |name: &str, default: u64| match text(name) {
        Some(value) => value.parse().map_err(|_| format!("--{name}: {value:?} is no number")),
        None => Ok(default),
    };
    let duration = |name: &str, default: Duration| match text(name) {
        Some(value) => gotext::parse_duration(value).map_err(|why| format!("--{name}: {why}")),
        None => Ok(default),
    };
    let clients = urls("listen-client-urls", text("listen-client-urls").unwrap_or(LISTEN))?;
    let metrics = urls("listen-metrics-urls", text("listen-metrics-urls").unwrap_or_default())?;
    let advertised = urls("advertise-client-urls", text("advertise-client-urls").unwrap_or_default())?;
    let secure = clients.iter().chain(&metrics).find(|url| url.scheme_str() == Some("https"));
    let authorities = path("trusted-ca-file");
    if is_set("client-cert-auth")? && authorities.is_none() {
        return Err("--client-cert-auth needs --trusted-ca-file, the CAs of clients".to_owned());
    }
    let tls = match (secure, path("cert-file"), path("key-file")) {
        (None, ..) => None,
        (Some(_), Some(certificate), Some(key)) => Some(TlsFiles { certificate, key, authorities }),
        (Some(url), ..) => return Err(format!("{url} needs --cert-file and --key-file")),
    };
    let name = text("name").unwrap_or("default").to_owned();
    let data_dir = path("data-dir").unwrap_or_else(|| format!("{name}.etcd").into());
    let datastore = match text("datastore") {
        Some(url) => Datastore::parse(url).map_err(|error| format!("--datastore: {error}"))?,
        None => Datastore::in_data_dir(&data_dir),
    };
    let defaults = engine::Config::default();
    let progress_interval = duration("watch-progress-notify-interval", defaults.progress_interval)?;
    if progress_interval < SHORTEST_PROGRESS {
        return Err(format!(
            "--watch-progress-notify-interval is at least {}",
            gotext::duration(SHORTEST_PROGRESS)
        ));
    }
    let quota = number("quota-backend-bytes", 0)?;
    Ok(Config {
        clients,
        metrics,
        tls,
        durability: if is_set("unsafe-no-fsync")? { Durability::None } else { Durability::Full },
        engine: engine::Config {
            max_txn_ops: number("max-txn-ops", defaults.max_txn_ops as u64)? as usize,
            progress_interval,
            auto_compaction: auto_compaction(
                text("auto-compaction-mode"),
                text("auto-compaction-retention"),
            )?,
            ..defaults
        },
        keepalive: Keepalive {
            interval: duration("grpc-keepalive-interval", Duration::from_secs(2 * 60 * 60))?,
            timeout: duration("grpc-keepalive-timeout", Duration::from_secs(20))?,
            streams: u32::try_from(number("max-concurrent-streams", u32::MAX.into())?).unwrap_or(u32::MAX),
        },
        log: LogConfig {
            verbosity: if text("log-level") == Some("debug") { DEBUG } else { 0 },
            is_quiet: matches!(text("log-level"), Some("warn" | "error")),
            format: LogFormat::Text,
        },
        ignored,
        // As etcd prints them, without a slash at the end.
        advertised: advertised.iter().map(|url| url.to_string().trim_end_matches('/').to_owned()).collect(),
        version: text("emulated-etcd-version").unwrap_or(VERSION).to_owned(),
        longest_request: number("max-request-bytes", LONGEST_REQUEST)? as usize,
        quota: (quota > 0).then_some(quota),
        name,
        data_dir,
        datastore,
    })
}

/// The level of `debug`, as klog counts.
const DEBUG: u8 = 4;
/// The shortest interval of progress, as etcd has it.
const SHORTEST_PROGRESS: Duration = Duration::from_millis(100);
/// The default of `--max-request-bytes`.
const LONGEST_REQUEST: u64 = 1536 << 10;

/// The compaction that nobody asks for. A number of hours without a unit is taken as etcd takes it.
fn auto_compaction(mode: Option<&str>, retention: Option<&str>) -> Result<AutoCompaction, String> {
    let bad =
        |text: &str| format!("--auto-compaction-retention: {text:?} is neither a duration nor a number");
    match (mode.unwrap_or("periodic"), retention) {
        ("periodic", None) => Ok(AutoCompaction::default()),
        ("periodic" | "revision", Some("0" | "0s" | "0h")) => Ok(AutoCompaction::Off),
        ("periodic", Some(text)) => {
            let hours = text.parse::<u64>().map(|hours| Duration::from_secs(hours.saturating_mul(60 * 60)));
            let age = hours.or_else(|_| gotext::parse_duration(text)).map_err(|_| bad(text))?;
            Ok(AutoCompaction::Periodic(age))
        }
        ("revision", None) => Ok(AutoCompaction::Off),
        ("revision", Some(text)) => Ok(AutoCompaction::Revision(text.parse().map_err(|_| bad(text))?)),
        (mode, _) => Err(format!("--auto-compaction-mode: {mode:?} is neither periodic nor revision")),
    }
}

/// URLs by comma, each once.
fn urls(flag: &str, text: &str) -> Result<Vec<Uri>, String> {
    let mut found = Vec::new();
    for text in text.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(format!("--{flag}: the scheme of {text:?} must be http or https"));
        }
        let url = text.parse::<Uri>().map_err(|error| format!("--{flag}: {text:?} is no URL: {error}"))?;
        if url.port().is_none() {
            return Err(format!("--{flag}: {text:?} has no port"));
        }
        if !found.contains(&url) {
            found.push(url);
        }
    }
    Ok(found)
}

fn help() -> String {
    let mut text = "etcd's API on SQLite or PostgreSQL (docs/etcd.md). Rowplane in kube-apiserver's place asks it where to keep
its own state, which is --data-dir if it is mounted there, too.

Usage:
  etcd [flags]

Any flag of etcd's is accepted, also as a variable ETCD_NAME. These count:
"
    .to_owned();
    let values = VALUES.iter().map(|flag| (flag, "VALUE"));
    for ((name, about), value) in values.chain(SWITCHES.iter().map(|flag| (flag, "'false'"))) {
        text.push_str(&format!("  --{name} {value}\n    {about}\n"));
    }
    text
}

#[cfg(test)]
mod tests;
