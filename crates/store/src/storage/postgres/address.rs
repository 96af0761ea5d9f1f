//! Addresses of PostgreSQL databases and the ways there: a URL in libpq's terms, what the environment adds to it, and
//! files with passwords and certificates.

mod hosts;
mod password;
mod secure;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use url::Url;

pub use self::hosts::Wanted;
pub use self::secure::{Identity, Roots, Trust};

use super::lineage::ClusterId;
use crate::storage::OpenError;
use secure::{Certificates, SslMode};

/// A database as the operator names it. Neither `Debug` nor `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// A URL as libpq takes it. Its parameter `schema`, which libpq does not have, names the schema with the store's tables.
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

/// The environment of the process: its variables and the user's home directory.
pub struct Environment<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub home: Option<PathBuf>,
}

/// How to connect to a database.
pub struct Route {
    /// One at least, in the order in which they are to be tried.
    pub places: Vec<Place>,
    /// Whether the order is not to matter.
    pub shuffled: bool,
    pub wanted: Wanted,
    /// How long each host may take.
    pub limit: Option<Duration>,
    /// Warnings for the operator, a line each.
    pub warnings: Vec<String>,
}

/// How to connect to one of the hosts.
#[derive(Clone)]
pub struct Place {
    /// Host and port, or the directory of a socket.
    pub name: String,
    /// Host, port or socket, user, database, password. TLS is described by `transport`.
    pub options: PgConnectOptions,
    pub transport: Transport,
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
    /// The address of the database alone, and the schema that the URL names.
    pub fn split(&self) -> (Self, Option<String>) {
        let (place, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let (schemas, others): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|part| !part.is_empty()).partition(|part| part.starts_with("schema="));
        let url = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
        let query = Url::parse(&format!("schema:?{}", schemas.join("&")));
        let schema =
            query.ok().and_then(|query| query.query_pairs().last().map(|(_, name)| name.into_owned()));
        (Self { url, ..self.clone() }, schema)
    }

    pub fn resolve(&self) -> Result<Route, OpenError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        self.resolve_in(&Environment { variable: &variable, home: std::env::home_dir() })
    }

    pub fn resolve_in(&self, environment: &Environment<'_>) -> Result<Route, OpenError> {
        self.route(environment).map_err(|reason| OpenError::Url { url: self.to_string(), reason })
    }

    fn route(&self, environment: &Environment<'_>) -> Result<Route, String> {
        let (database, _schema) = self.split();
        let (without_hosts, hosts) = hosts::split_off(&database.url);
        let url = Url::parse(&without_hosts).map_err(|error| error.to_string())?;
        let mut found = UrlParts::default();
        found.read(&url, hosts)?;
        found.complete(environment)?;
        let mut warnings = std::mem::take(&mut found.warnings);
        if found.password.is_some() && self.in_arguments {
            warnings.push(
                "the password in the datastore's URL can be seen by everybody on this host who lists processes; use \
                 --datastore-password-file, ~/.pgpass or the environment"
                    .to_owned(),
            );
        }
        let mut options = PgConnectOptions::new_without_pgpass().application_name("rowplane");
        // No number of the store is a float, and poolers do not know the parameter.
        options = options.disable_statement_logging().extra_float_digits(None);
        if let Some(user) = &found.user {
            options = options.username(user);
        }
        if let Some(database) = &found.database {
            options = options.database(database);
        }
        if let Some(setting) = found.settings.take() {
            options = options.options(setting);
        }
        let password = match (&self.password_file, &found.password) {
            (Some(_), Some(_)) => {
                return Err("it has a password, and a password file is named too".to_owned());
            }
            (Some(file), None) => Some(password::of_file(file)?),
            (None, password) => password.clone(),
        };
        let mut places = Vec::new();
        for host in found.hosts()? {
            let mut options = options.clone().port(host.port);
            let target = host.target();
            options = match target.starts_with('/') {
                true => options.socket(target),
                false => options.host(target.trim_matches(['[', ']'])),
            };
            // A password from libpq's environment variable is in the options already.
            let password = match &password {
                None if (environment.variable)("PGPASSWORD").is_none() => {
                    let file = found.passfile.clone().map(PathBuf::from);
                    password::of_passfile(file, &host.name, &options, environment, &mut warnings)
                }
                given => given.clone(),
            };
            if let Some(password) = password {
                options = options.password(&password);
            }
            let transport = found.transport(&host.name, target, &options, environment, &mut warnings)?;
            places.push(Place { name: host.to_string(), options, transport });
        }
        let mut told = std::collections::HashSet::new();
        warnings.retain(|warning| told.insert(warning.clone()));
        let (shuffled, limit) = (found.shuffled.unwrap_or_default(), found.limit);
        Ok(Route { places, shuffled, wanted: found.wanted.unwrap_or_default(), limit, warnings })
    }
}

/// The parts of a URL.
#[derive(Default)]
struct UrlParts {
    /// Lists with commas between.
    hosts: Option<String>,
    /// The addresses to connect to, so that the hosts' names are not looked up.
    addresses: Option<String>,
    ports: Option<String>,
    wanted: Option<Wanted>,
    shuffled: Option<bool>,
    limit: Option<Duration>,
    user: Option<String>,
    password: Option<String>,
    passfile: Option<String>,
    database: Option<String>,
    mode: Option<SslMode>,
    certificates: Certificates,
    settings: Option<Vec<(String, String)>>,
    warnings: Vec<String>,
}

/// libpq's parameters that are accepted and ignored: connections are kept alive as `postgres/session.rs` says.
const IGNORED: [&str; 9] = [
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
    /// Reads a URL without its hosts, and the hosts.
    fn read(&mut self, url: &Url, hosts: &str) -> Result<(), String> {
        let text = |text: &str| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
            decoded.map(|text| text.into_owned()).map_err(|error| error.to_string())
        };
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let (hosts, ports) = hosts::names_and_ports(hosts);
        self.hosts = given(text(&hosts)?);
        self.ports = given(ports);
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
            "host" => self.hosts = Some(value),
            "hostaddr" => self.addresses = Some(value),
            "port" => self.ports = Some(value),
            "target_session_attrs" => self.wanted = Some(Wanted::parse(&value)?),
            "load_balance_hosts" => self.shuffled = Some(hosts::is_shuffled(&value)?),
            "connect_timeout" => self.limit = hosts::limit(&value)?,
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
