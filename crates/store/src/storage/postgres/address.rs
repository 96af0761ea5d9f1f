//! Where a PostgreSQL database is and how to get there: a URL in libpq's terms, what the environment adds to it, and files
//! with passwords and certificates.

mod password;
mod secure;

use std::fmt;
use std::path::PathBuf;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use url::Url;

pub use self::secure::{Identity, Roots, Trust};

use super::lineage::ClusterId;
use crate::storage::OpenError;
use secure::{Certificates, SslMode};

/// A database as the operator names it. Neither `Debug` nor `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub url: String,
    /// A file whose content replaces the password in the URL. A line end after the password is ignored.
    pub password_file: Option<PathBuf>,
    /// The operator accepts this cluster as the database's successor, though it is another cluster or on an older
    /// timeline.
    pub accepted: Option<ClusterId>,
    /// The URL was given on the command line, so that other users can read it in the list of processes.
    pub in_arguments: bool,
}

impl From<&str> for Address {
    fn from(url: &str) -> Self {
        Self { url: url.to_owned(), password_file: None, accepted: None, in_arguments: false }
    }
}

impl From<String> for Address {
    fn from(url: String) -> Self {
        Self::from(&*url)
    }
}

impl From<&String> for Address {
    fn from(url: &String) -> Self {
        Self::from(&**url)
    }
}

impl From<&Address> for Address {
    fn from(address: &Address) -> Self {
        address.clone()
    }
}

/// Prints the URL without the password, and without parameters, which may contain a password too.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.url.split_once("://") else { return Ok(()) };
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        match rest.rsplit_once('@') {
            None => write!(f, "{scheme}://{rest}"),
            Some((credentials, place)) => {
                let user = credentials.split(':').next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{place}")
            }
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// What the process inherits: environment variables and the user's home directory.
pub struct Environment<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub home: Option<PathBuf>,
}

/// How to connect to a database.
pub struct Route {
    /// Host, port or socket, user, database, password. TLS is described by `transport`.
    pub options: PgConnectOptions,
    pub transport: Transport,
    /// Warnings for the operator, a line each.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket, or TCP in plain text.
    Plain,
    /// TCP in plain text, or TLS if the database refuses that.
    PlainElseTls(TlsTarget),
    Tls(TlsTarget),
}

/// The server at the other end of a TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsTarget {
    pub host: String,
    pub port: u16,
    /// The name that the server's certificate must contain.
    pub name: String,
    pub trust: Trust,
    pub identity: Option<Identity>,
    /// Whether the connection goes on in plain text if the server has no TLS.
    pub optional: bool,
}

impl Address {
    pub fn resolve(&self) -> Result<Route, OpenError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        self.resolve_in(&Environment { variable: &variable, home: std::env::home_dir() })
    }

    pub fn resolve_in(&self, environment: &Environment<'_>) -> Result<Route, OpenError> {
        self.route(environment).map_err(|reason| OpenError::Url { url: self.to_string(), reason })
    }

    fn route(&self, environment: &Environment<'_>) -> Result<Route, String> {
        let url = Url::parse(&self.url).map_err(|error| error.to_string())?;
        let mut found = UrlParts::default();
        found.read(&url)?;
        let mut warnings = std::mem::take(&mut found.warnings);
        if found.password.is_some() && self.in_arguments {
            warnings.push(
                "the password in the datastore's URL can be seen by everybody on this host who lists processes; use \
                 --datastore-password-file, ~/.pgpass or the environment"
                    .to_owned(),
            );
        }
        let mut options = PgConnectOptions::new_without_pgpass().application_name("rowplane");
        options = options.disable_statement_logging();
        let host = found.host.clone().unwrap_or_else(|| options.get_host().to_owned());
        let target = found.address.clone().unwrap_or_else(|| host.clone());
        if let Some(port) = found.port {
            options = options.port(port);
        }
        if let Some(user) = &found.user {
            options = options.username(user);
        }
        if let Some(database) = &found.database {
            options = options.database(database);
        }
        if let Some(setting) = found.settings.take() {
            options = options.options(setting);
        }
        options = match target.starts_with('/') {
            true => options.socket(&target),
            false => options.host(target.trim_matches(['[', ']'])),
        };
        // A password from libpq's environment variable is in the options already.
        if let Some(file) = &self.password_file {
            if found.password.is_some() {
                return Err("it has a password, and a password file is named too".to_owned());
            }
            options = options.password(&password::of_file(file)?);
        } else if let Some(password) = &found.password {
            options = options.password(password);
        } else if (environment.variable)("PGPASSWORD").is_none() {
            let file = found.passfile.clone().map(PathBuf::from);
            let found = password::of_passfile(file, &host, &options, environment, &mut warnings);
            if let Some(password) = found {
                options = options.password(&password);
            }
        }
        let transport = found.transport(&host, &target, &options, environment, &mut warnings)?;
        Ok(Route { options, transport, warnings })
    }
}

/// The parts of a URL.
#[derive(Default)]
struct UrlParts {
    host: Option<String>,
    /// The address to connect to, so that the host's name is not looked up.
    address: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<String>,
    passfile: Option<String>,
    database: Option<String>,
    mode: Option<SslMode>,
    certificates: Certificates,
    settings: Option<Vec<(String, String)>>,
    warnings: Vec<String>,
}

/// libpq's parameters that are accepted and ignored: connecting has limits of time of its own, and connections are kept
/// alive as `postgres/session.rs` says.
const IGNORED: [&str; 12] = [
    "connect_timeout",
    "target_session_attrs",
    "load_balance_hosts",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "fallback_application_name",
    "client_encoding",
    "gssencmode",
    "statement-cache-capacity",
];

impl UrlParts {
    fn read(&mut self, url: &Url) -> Result<(), String> {
        let text = |text: &str| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
            decoded.map(|text| text.into_owned()).map_err(|error| error.to_string())
        };
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        self.host = given(text(url.host_str().unwrap_or_default())?);
        self.port = url.port();
        self.user = given(text(url.username())?);
        self.password = url.password().map(text).transpose()?.and_then(given);
        self.database = given(text(url.path().trim_start_matches('/'))?);
        for (name, value) in url.query_pairs() {
            self.parameter(&name, value.into_owned())?;
        }
        Ok(())
    }

    /// Reads one parameter of the URL. Unknown parameters are refused, since `channel_binding=require`, for example,
    /// must not be ignored. Errors do not show values, since a value may be a password.
    fn parameter(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "host" => self.host = Some(value),
            "hostaddr" => {
                let parsed = value.parse::<std::net::IpAddr>();
                parsed.map_err(|error| format!("hostaddr: {error}"))?;
                self.address = Some(value);
            }
            "port" => self.port = Some(value.parse().map_err(|error| format!("port: {error}"))?),
            "dbname" => self.database = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "passfile" => self.passfile = Some(value),
            "sslmode" | "ssl-mode" => self.mode = Some(SslMode::parse(&value)?),
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" => self.certificates.root = Some(value),
            "sslcert" | "ssl-cert" => self.certificates.certificate = Some(value),
            "sslkey" | "ssl-key" => self.certificates.key = Some(value),
            "application_name" => {}
            "options" => self.settings.get_or_insert_default().extend(settings(&value)?),
            _ if IGNORED.contains(&name) => {
                self.warnings.push(format!("{name} in the datastore's URL is ignored"))
            }
            _ => match name.strip_prefix("options[").and_then(|name| name.strip_suffix(']')) {
                Some(name) => self.settings.get_or_insert_default().push((name.to_owned(), value)),
                None => return Err(format!("the parameter {name:?} is not supported")),
            },
        }
        Ok(())
    }
}

/// Parses `options` as PostgreSQL's server does with its command line: `-c name=value`, `-cname=value` and
/// `--name=value`. A backslash escapes a space.
fn settings(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut words = words(text).into_iter();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("-c") {
            Some("") => words.next().unwrap_or_default(),
            Some(setting) => setting.to_owned(),
            None => word.strip_prefix("--").unwrap_or_default().to_owned(),
        };
        let (name, value) = setting.split_once('=').ok_or("options: only settings are understood")?;
        found.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(found)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.get_or_insert_default().extend(letters.next()),
            _ if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
