//! `sslmode` as libpq defines it, and the files that belong to it.
//!
//! One rule is stricter: plain text to another host must be requested explicitly with `sslmode=disable`. The modes in
//! which libpq would fall back to plain text (`allow`, `prefer`, and none at all) demand TLS there. On a Unix socket
//! `sslmode` has no effect.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnectOptions;

use super::{Environment, TlsTarget, Transport, UrlParts};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => SslMode::Disable,
            "allow" => SslMode::Allow,
            "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return Err(format!("sslmode {text:?} is none of libpq's")),
        })
    }
}

/// Paths of files, as a URL names them.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    pub root: Option<String>,
    pub certificate: Option<String>,
    pub key: Option<String>,
}

/// How a server's certificate is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    Anybody,
    /// One of these authorities must have issued it.
    Issuer(Roots),
    /// One of these authorities must have issued it, and it must contain the host's name.
    IssuerAndName(Roots),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The certificates in this file and no others.
    File(PathBuf),
    System,
}

/// The certificate with which this server authenticates itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl UrlParts {
    pub fn transport(
        &self,
        host: &str,
        target: &str,
        options: &PgConnectOptions,
        environment: &Environment<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Transport, String> {
        if target.starts_with('/') {
            return Ok(Transport::Plain);
        }
        let asked = match self.mode {
            Some(mode) => Some(mode),
            None => (environment.variable)("PGSSLMODE").map(|mode| SslMode::parse(&mode)).transpose()?,
        };
        let roots = self.roots(environment)?;
        let mode = mode(asked, roots.as_ref(), is_this_host(target))?;
        if mode == SslMode::Disable {
            if !is_this_host(target) {
                warnings.push(format!(
                    "the link to the database at {host} is in plain text, as sslmode=disable asks"
                ));
            }
            return Ok(Transport::Plain);
        }
        let trust = match (mode, roots) {
            (SslMode::VerifyFull, Some(roots)) => Trust::IssuerAndName(roots),
            (SslMode::VerifyFull | SslMode::VerifyCa, None) => {
                return Err("sslmode verifies the server's certificate, and there is no root certificate: give a file \
                     with sslrootcert, or sslrootcert=system for the system's"
                    .to_owned());
            }
            (_, Some(roots)) => Trust::Issuer(roots),
            (_, None) => Trust::Anybody,
        };
        if trust == Trust::Anybody && !is_this_host(target) {
            warnings.push(format!(
                "the certificate of the database at {host} is not verified: whoever is on the way may read and change \
                 everything; use sslmode=verify-full with sslrootcert"
            ));
        }
        let tls = TlsTarget {
            host: target.trim_matches(['[', ']']).to_owned(),
            port: options.get_port(),
            name: host.trim_matches(['[', ']']).to_owned(),
            trust,
            identity: self.identity(environment)?,
            optional: mode == SslMode::Prefer,
        };
        Ok(match mode {
            SslMode::Allow => Transport::PlainElseTls(tls),
            _ => Transport::Tls(tls),
        })
    }

    /// The root certificates. A named file that does not exist is an error: libpq would go on without verifying, so
    /// that a typing error would switch verification off.
    fn roots(&self, environment: &Environment<'_>) -> Result<Option<Roots>, String> {
        let named = self.certificates.root.clone().or_else(|| (environment.variable)("PGSSLROOTCERT"));
        match named {
            Some(system) if system == "system" => Ok(Some(Roots::System)),
            Some(file) if Path::new(&file).is_file() => Ok(Some(Roots::File(file.into()))),
            Some(file) => Err(format!("the root certificate {file} is not there")),
            None => Ok(usual_file(environment, "root.crt").map(Roots::File)),
        }
    }

    fn identity(&self, environment: &Environment<'_>) -> Result<Option<Identity>, String> {
        let named = |given: &Option<String>, variable: &str| {
            given.clone().or_else(|| (environment.variable)(variable)).map(PathBuf::from)
        };
        let certificate = named(&self.certificates.certificate, "PGSSLCERT");
        let Some(certificate) = certificate.or_else(|| usual_file(environment, "postgresql.crt")) else {
            return Ok(None);
        };
        let key = named(&self.certificates.key, "PGSSLKEY");
        let key = key.or_else(|| usual_file(environment, "postgresql.key"));
        let key =
            key.ok_or_else(|| format!("there is no sslkey for the certificate {}", certificate.display()))?;
        check_key(&key)?;
        Ok(Some(Identity { certificate, key }))
    }
}

/// The mode to use, given the requested one.
fn mode(asked: Option<SslMode>, roots: Option<&Roots>, this_host: bool) -> Result<SslMode, String> {
    match (asked, roots) {
        // Anybody can get a certificate from one of the system's CAs, so only the name tells servers apart.
        (None | Some(SslMode::VerifyFull), Some(Roots::System)) => Ok(SslMode::VerifyFull),
        (Some(_), Some(Roots::System)) => {
            Err("sslrootcert=system needs sslmode=verify-full: the system's CAs vouch for anybody".to_owned())
        }
        (None, _) if this_host => Ok(SslMode::Allow),
        (None | Some(SslMode::Allow | SslMode::Prefer), _) if !this_host => Ok(SslMode::Require),
        (Some(mode), _) => Ok(mode),
        (None, _) => Ok(SslMode::Require),
    }
}

/// Whether connections to the target stay on this host. Of names only `localhost` counts, since any other may lead
/// elsewhere tomorrow.
fn is_this_host(target: &str) -> bool {
    let target = target.trim_matches(['[', ']']);
    match target.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => target.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
    }
}

fn usual_file(environment: &Environment<'_>, name: &str) -> Option<PathBuf> {
    let path = environment.home.as_ref()?.join(".postgresql").join(name);
    path.is_file().then_some(path)
}

/// Applies libpq's rule for key files: no other user may read the file, except that root may give it to a group.
fn check_key(key: &Path) -> Result<(), String> {
    let found = std::fs::metadata(key).map_err(|error| format!("{}: {error}", key.display()))?;
    let forbidden = if found.uid() == 0 { 0o037 } else { 0o077 };
    match found.mode() & forbidden {
        0 => Ok(()),
        _ => Err(format!("others have access to the key {}; its mode has to be 0600 or less", key.display())),
    }
}
