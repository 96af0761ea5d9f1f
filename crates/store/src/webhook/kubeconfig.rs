//! Hooks that are named by a kubeconfig: where they listen, whom to trust, and what to show them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::header::HeaderValue;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Client, Endpoint, Scheme, Webhook};
use crate::codec::yaml;
use crate::gotext::{decode_base64, encode_base64};
use crate::tree::Value;

/// Why a kubeconfig is not used.
#[derive(Debug, thiserror::Error)]
#[error("the kubeconfig {} {problem}", path.display())]
pub struct KubeconfigError {
    path: PathBuf,
    problem: String,
}

impl Webhook {
    /// The hook of the current context. Reads files.
    pub fn of_kubeconfig(path: &Path, timeout: Duration) -> Result<Self, KubeconfigError> {
        let refuse = |problem: String| KubeconfigError { path: path.to_owned(), problem };
        let text = std::fs::read(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let value = yaml::parse(&text).map_err(|why| refuse(format!("is no YAML: {why}")))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        Kubeconfig { value: &value, directory }.hook(timeout).map_err(refuse)
    }
}

/// The users of a kubeconfig, of which each is for hosts that its name tells
/// (`pkg/admission/plugin/webhook`, `AuthenticationInfoResolver`).
#[derive(Debug)]
pub struct HostUsers {
    content: Value,
    directory: PathBuf,
}

impl HostUsers {
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let refuse = |problem: String| KubeconfigError { path: path.to_owned(), problem };
        let text = std::fs::read(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let content = yaml::parse(&text).map_err(|why| refuse(format!("is no YAML: {why}")))?;
        Ok(Self { content, directory: path.parent().unwrap_or(Path::new(".")).to_owned() })
    }

    /// The credentials that the server at `host:port` is shown; none if no user is for it. Reads files.
    pub fn client(&self, address: &str) -> Result<Client, String> {
        let config = Kubeconfig { value: &self.content, directory: &self.directory };
        let Some(user) = self.user(&config, address) else { return Ok(Client::default()) };
        if user.get("exec").is_some() {
            return Err("exec is not supported".to_owned());
        }
        if user.get("auth-provider").is_some() {
            return Err("auth provider not supported".to_owned());
        }
        Ok(Client { identity: config.identity(user)?, authorization: config.authorization(user)? })
    }

    /// The user of the very host, else of the domains above it, the nearest first; for the usual port also without it; else
    /// `*`, else the current context's.
    fn user<'a>(&'a self, config: &Kubeconfig<'a>, address: &str) -> Option<&'a Value> {
        let user = |name: &str| config.named("users", name, "user").ok();
        let of_domains = |address: &str| {
            let above = address.match_indices('.').map(|(at, _)| &address[at..]);
            user(address).or_else(|| above.into_iter().find_map(|domain| user(&format!("*{domain}"))))
        };
        of_domains(address)
            .or_else(|| of_domains(address.strip_suffix(":443")?))
            .or_else(|| user("*"))
            .or_else(|| {
                let context = config.named("contexts", text(config.value, "current-context"), "context");
                user(text(context.ok()?, "user"))
            })
    }
}

/// The cluster of a kubeconfig's current context, for commands that are its client.
#[derive(Debug)]
pub struct CurrentCluster {
    /// The URL of the server.
    pub server: String,
    /// The authorities of the server's certificate in PEM; empty for those of the system.
    pub authorities: Vec<u8>,
    /// The credentials; none for a user with a plugin that makes them.
    pub client: Client,
}

impl CurrentCluster {
    /// Reads a kubeconfig and the files that it names.
    pub fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let HostUsers { content, directory } = HostUsers::read(path)?;
        let config = Kubeconfig { value: &content, directory: &directory };
        config.current().map_err(|problem| KubeconfigError { path: path.to_owned(), problem })
    }

    /// The cluster of a kubeconfig that was read before. Reads the files that it names.
    pub fn of(content: &Value, directory: &Path) -> Result<Self, String> {
        Kubeconfig { value: content, directory }
            .current()
            .map_err(|problem| format!("the kubeconfig {problem}"))
    }
}

struct Kubeconfig<'a> {
    value: &'a Value,
    /// The directory that paths are relative to.
    directory: &'a Path,
}

impl<'a> Kubeconfig<'a> {
    /// The cluster and the user of the current context.
    fn context(&self) -> Result<(&'a Value, &'a Value), String> {
        let context = text(self.value, "current-context");
        let context = self.named("contexts", context, "context")?;
        let cluster = self.named("clusters", text(context, "cluster"), "cluster")?;
        let user = match text(context, "user") {
            "" => &Value::Null,
            name => self.named("users", name, "user")?,
        };
        Ok((cluster, user))
    }

    fn current(&self) -> Result<CurrentCluster, String> {
        let (cluster, user) = self.context()?;
        Ok(CurrentCluster {
            server: text(cluster, "server").to_owned(),
            authorities: self.data(cluster, "certificate-authority")?.unwrap_or_default(),
            client: Client { identity: self.identity(user)?, authorization: self.authorization(user)? },
        })
    }

    fn hook(&self, timeout: Duration) -> Result<Webhook, String> {
        let (cluster, user) = self.context()?;
        for refused in ["proxy-url", "insecure-skip-tls-verify"] {
            if cluster.get(refused).is_some_and(|value| *value != false) {
                return Err(format!("has {refused}, which is not supported"));
            }
        }
        if ["exec", "auth-provider"].iter().any(|method| user.get(*method).is_some()) {
            return Err("has a user with exec or auth-provider, which are not supported".to_owned());
        }
        let server = text(cluster, "server");
        let scheme = match server.split_once("://") {
            Some(("https", _)) => Some(Scheme::Https),
            Some(("http", _)) => Some(Scheme::Http),
            _ => None,
        };
        let endpoint = scheme.and_then(|scheme| Some(Endpoint { scheme, ..Endpoint::parse(server)? }));
        let mut endpoint =
            endpoint.ok_or_else(|| format!("has the server {server:?}, which is no URL of https or http"))?;
        let name = text(cluster, "tls-server-name");
        if !name.is_empty() {
            endpoint.server_name = name.to_owned();
        }
        let ca_bundle = self.data(cluster, "certificate-authority")?.unwrap_or_default();
        let client = Client { identity: self.identity(user)?, authorization: self.authorization(user)? };
        Ok(Webhook::as_client(endpoint, &ca_bundle, timeout, client).over_http2())
    }

    /// The entry of a list by its name, without the name around it; null if it has nothing else.
    fn named(&self, list: &str, name: &str, member: &str) -> Result<&'a Value, String> {
        let entries = self.value.get(list).and_then(Value::as_array);
        let found = entries.into_iter().flatten().find(|entry| text(entry, "name") == name);
        let entry = found.ok_or_else(|| format!("has no {member} {name:?}"))?;
        Ok(entry.get(member).unwrap_or(&Value::Null))
    }

    fn identity(
        &self,
        user: &Value,
    ) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, String> {
        let (certificate, key) = (self.data(user, "client-certificate")?, self.data(user, "client-key")?);
        let (certificate, key) = match (certificate, key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            _ => return Err("has a user with a certificate or a key alone".to_owned()),
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
        let chain = chain.map_err(|error| format!("has a client certificate that is no PEM: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(&key);
        let key = key.map_err(|error| format!("has a client key that is no PEM: {error}"))?;
        Ok(Some((chain, key)))
    }

    fn authorization(&self, user: &Value) -> Result<Option<HeaderValue>, String> {
        let token = match (text(user, "token"), text(user, "tokenFile")) {
            ("", "") => None,
            (token, "") => Some(token.to_owned()),
            (_, file) => {
                let path = self.directory.join(file);
                let token = std::fs::read_to_string(&path);
                Some(token.map_err(|error| format!("names {}: {error}", path.display()))?.trim().to_owned())
            }
        };
        let header = match (token, text(user, "username")) {
            (Some(token), _) => format!("Bearer {token}"),
            (None, "") => return Ok(None),
            (None, name) => {
                let pair = format!("{name}:{}", text(user, "password"));
                format!("Basic {}", encode_base64(pair.as_bytes()))
            }
        };
        let mut header =
            HeaderValue::from_str(&header).map_err(|_| "has a token that cannot be sent".to_owned())?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    /// The contents of `<field>-data`, or of the file that `<field>` names.
    fn data(&self, parent: &Value, field: &str) -> Result<Option<Vec<u8>>, String> {
        let data = text(parent, &format!("{field}-data"));
        if !data.is_empty() {
            return decode_base64(data).map(Some).map_err(|why| format!("has a bad {field}-data: {why}"));
        }
        match text(parent, field) {
            "" => Ok(None),
            file => {
                let path = self.directory.join(file);
                let read = std::fs::read(&path);
                read.map(Some).map_err(|error| format!("names {}: {error}", path.display()))
            }
        }
    }
}

fn text<'a>(parent: &'a Value, field: &str) -> &'a str {
    parent.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Webhook, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config");
        std::fs::write(&path, text).expect("writes");
        std::fs::write(dir.path().join("token"), "secret\n").expect("writes");
        Webhook::of_kubeconfig(&path, Duration::from_secs(30)).map_err(|error| error.problem)
    }

    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[test]
    fn the_current_context_counts() {
        let hook =
            read(&config("server: 'https://hook.example:8443/audit'", "tokenFile: token")).expect("a hook");
        assert_eq!(hook.endpoint.authority, "hook.example:8443");
        assert_eq!(hook.endpoint.path, "/audit");
        assert_eq!(hook.client.authorization.expect("a token"), "Bearer secret");
        let basic = read(&config("server: 'https://h'", "username: u, password: p")).expect("a hook");
        assert_eq!(basic.client.authorization.expect("a password"), "Basic dTpw");
        let plain = read(&config("server: 'http://h/audit'", "")).expect("a hook");
        assert_eq!((plain.endpoint.scheme, plain.endpoint.address()), (Scheme::Http, "h:80".to_owned()));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (cluster, user, why) in [
            ("server: 'ftp://h'", "token: t", "has the server \"ftp://h\", which is no URL of https or http"),
            ("server: 'h:80'", "token: t", "has the server \"h:80\", which is no URL of https or http"),
            ("server: 'https://h', proxy-url: x", "", "has proxy-url, which is not supported"),
            (
                "server: 'https://h'",
                "exec: {command: x}",
                "has a user with exec or auth-provider, which are not supported",
            ),
            ("server: 'https://h'", "client-key-data: eA==", "has a user with a certificate or a key alone"),
        ] {
            assert_eq!(read(&config(cluster, user)).err().as_deref(), Some(why));
        }
        // A user without credentials.
        let bare = config("server: 'https://h'", "token: x").replace(", user: {token: x}", "");
        assert!(read(&bare).is_ok(), "{bare}");
        assert_eq!(read("current-context: c").err().as_deref(), Some("has no context \"c\""));
    }
}
