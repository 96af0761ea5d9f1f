//! etcd's command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::http::Uri;

use super::super::error::Error;
use super::{REFUSAL, Routes, VERSION};
use crate::gotext;

/// The default address of clients.
const LISTEN: &str = "http://localhost:2379";

/// Flags with a value that count, and what they are for.
const VALUES: [(&str, &str); 7] = [
    ("cert-file", "The certificate for https URLs, in PEM"),
    ("data-dir", "The directory in which rowplane as kube-apiserver is to keep its state, if it sees it"),
    ("key-file", "The private key of --cert-file, in PEM"),
    ("listen-client-urls", "The http or https URLs of clients, by comma [default: http://localhost:2379]"),
    ("listen-metrics-urls", "The http or https URLs at which only /health, /livez and /readyz are answered"),
    ("name", "The name from which --data-dir follows where it is not given [default: default]"),
    ("trusted-ca-file", "The CAs that have to have signed the certificates of clients of https URLs"),
];
/// Booleans that count.
const SWITCHES: [(&str, &str); 2] = [
    ("client-cert-auth", "Whether clients of https URLs have to show a certificate"),
    (
        "unsafe-no-fsync",
        "Whether state need not outlive the kube-apiserver: rowplane keeps it in memory then",
    ),
];

/// The action that a command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Serve(Box<Config>),
    Print(String),
}

/// The flags that count.
#[derive(Debug, PartialEq, Eq)]
pub struct Config {
    /// The addresses of clients, each once.
    pub clients: Vec<Uri>,
    /// The addresses at which only health is answered.
    pub metrics: Vec<Uri>,
    /// The files for https URLs, if there are such URLs.
    pub tls: Option<TlsFiles>,
    pub data_dir: PathBuf,
    pub durability: Durability,
}

/// Whether state has to outlive a crash of the machine.
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

impl Config {
    pub(super) fn metrics(&self) -> impl Iterator<Item = (&Uri, Routes)> {
        self.metrics.iter().map(|url| (url, Routes::Health))
    }
}

/// Parses `--x=y`, `--x y` and `-x y`. Flags that do not count are ignored; of a repeated one the last counts.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Asked, Error> {
    let mut values = BTreeMap::<String, String>::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let flag = argument.trim_start_matches('-');
        let (name, inline) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let value = match (name, inline) {
            ("help" | "h", _) => return Ok(Asked::Print(help())),
            ("version", _) => return Ok(Asked::Print(format!("etcd Version: {VERSION}\n"))),
            (_, Some(value)) => value.to_owned(),
            (name, None) if SWITCHES.iter().any(|(known, _)| *known == name) => "true".to_owned(),
            (name, None) if VALUES.iter().any(|(known, _)| *known == name) => {
                arguments.next().ok_or_else(|| Error::Refused(format!("flag needs an argument: --{name}")))?
            }
            _ => continue,
        };
        values.insert(name.to_owned(), value);
    }
    config(&values).map(|config| Asked::Serve(Box::new(config))).map_err(Error::Refused)
}

fn config(values: &BTreeMap<String, String>) -> Result<Config, String> {
    let text = |name: &str| values.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let path = |name: &str| text(name).map(PathBuf::from);
    let is_set = |name: &str| match text(name) {
        Some(value) => gotext::parse_bool(value).ok_or_else(|| format!("--{name}: {value:?} is no boolean")),
        None => Ok(false),
    };
    let clients = urls("listen-client-urls", text("listen-client-urls").unwrap_or(LISTEN))?;
    let metrics = urls("listen-metrics-urls", text("listen-metrics-urls").unwrap_or_default())?;
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
    let named = || format!("{}.etcd", text("name").unwrap_or("default"));
    let data_dir = path("data-dir").unwrap_or_else(|| named().into());
    let durability = if is_set("unsafe-no-fsync")? { Durability::None } else { Durability::Full };
    Ok(Config { clients, metrics, tls, data_dir, durability })
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
    let mut text = format!(
        "{REFUSAL}. It answers health checks and stores nothing: rowplane in kube-apiserver's place
asks it where to keep its state, which is --data-dir if it is mounted there, too.

Usage:
  etcd [flags]

Any flag of etcd's is accepted. These count:
"
    );
    let values = VALUES.iter().map(|flag| (flag, "VALUE"));
    for ((name, about), value) in values.chain(SWITCHES.iter().map(|flag| (flag, "'false'"))) {
        text.push_str(&format!("  --{name} {value}\n    {about}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_all(arguments: &[&str]) -> Result<Config, String> {
        match parse(arguments.iter().map(|argument| (*argument).to_owned())) {
            Ok(Asked::Serve(config)) => Ok(*config),
            Ok(Asked::Print(text)) => panic!("{text}"),
            Err(error) => Err(error.one_line()),
        }
    }

    fn shown(urls: &[Uri]) -> Vec<String> {
        urls.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn flags_count_however_they_are_written() {
        for arguments in [
            &["--data-dir=d", "--listen-client-urls=http://127.0.0.1:7", "--unsafe-no-fsync=true"][..],
            &[
                "-data-dir",
                "d",
                "--listen-client-urls",
                "http://127.0.0.1:7",
                "--wal-dir",
                "w",
                "-unsafe-no-fsync",
            ],
            &[
                "--data-dir=c",
                "--listen-client-urls=x",
                "--data-dir=d",
                "--listen-client-urls=http://127.0.0.1:7",
                "--unsafe-no-fsync",
            ],
        ] {
            let config = parse_all(arguments).unwrap();
            assert_eq!(
                (shown(&config.clients), config.metrics),
                (vec!["http://127.0.0.1:7/".to_owned()], vec![])
            );
            assert_eq!((config.data_dir, config.durability), ("d".into(), Durability::None));
        }
        let config = parse_all(&["--name=n"]).unwrap();
        assert_eq!(config.data_dir, PathBuf::from("n.etcd"), "as etcd's default");
        assert_eq!(
            (shown(&config.clients), config.durability),
            (vec![format!("{LISTEN}/")], Durability::Full)
        );
    }

    /// kubeadm v1.37.2's, with the two addresses of a node whose own address is the loopback one.
    #[test]
    fn kubeadm_s_flags() {
        let config = parse_all(&[
            "--listen-client-urls=https://127.0.0.1:2379,https://127.0.0.1:2379",
            "--listen-metrics-urls=http://[::1]:2381",
            "--cert-file=/pki/server.crt",
            "--key-file=/pki/server.key",
            "--trusted-ca-file=/pki/ca.crt",
            "--client-cert-auth=true",
            "--data-dir=/var/lib/etcd",
        ]);
        let config = config.unwrap();
        assert_eq!(shown(&config.clients), ["https://127.0.0.1:2379/"], "each address once");
        assert_eq!(shown(&config.metrics), ["http://[::1]:2381/"]);
        let tls = config.tls.unwrap();
        assert_eq!(tls.authorities, Some("/pki/ca.crt".into()));
        assert_eq!((tls.certificate, tls.key), ("/pki/server.crt".into(), "/pki/server.key".into()));
    }

    #[test]
    fn help_shows_what_test_environments_look_for() {
        let Ok(Asked::Print(help)) = parse(["--help".to_owned()]) else { panic!("help") };
        // envtest searches the help for this flag.
        assert!(help.lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")));
        assert!(help.contains("stores nothing"), "{help}");
    }

    #[test]
    fn refusals() {
        for (argument, why) in [
            ("--listen-client-urls=unix://x", "the scheme of \"unix://x\" must be http or https"),
            ("--listen-metrics-urls=unixs://h:1", "--listen-metrics-urls: the scheme of"),
            ("--listen-client-urls=http://h", "\"http://h\" has no port"),
            ("--listen-client-urls=http://[h", "is no URL"),
            ("--listen-client-urls=https://h:1", "https://h:1/ needs --cert-file and --key-file"),
            ("--client-cert-auth", "--client-cert-auth needs --trusted-ca-file"),
            ("--unsafe-no-fsync=maybe", "--unsafe-no-fsync: \"maybe\" is no boolean"),
            ("--data-dir", "flag needs an argument: --data-dir"),
        ] {
            let error = parse_all(&[argument]).unwrap_err();
            assert!(error.contains(why), "{argument}: {error}");
        }
    }
}
