//! The first question of a request: which of the clusters behind the listener it is for, by the host or the path with which
//! its URL begins.

mod resident;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{Uri, Version, header};
use axum::response::Response;
use futures_util::future::BoxFuture;

pub use self::resident::Resident;
use super::response;
use super::server::{ConnectionInfo, Responder};
use crate::api::error::Error;

/// The URLs of a cluster, which are to it what the path of a server's URL is to client-go: a request reaches it without that path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// All URLs that no other cluster has.
    Rest,
    /// The paths below this one, such as `/clusters/a`. The longest one counts.
    Prefix(String),
    /// All paths at this name of a host, without a port.
    Host(String),
}

/// Why a cluster cannot be served at a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error(
        "{0:?} cannot be the path of a cluster: it has to begin with a slash, to end without one, and to consist of \
         segments of letters, digits, '-', '_', '.' and '~'"
    )]
    Path(String),
    #[error(
        "{0:?} cannot be the host of a cluster: it has to be a name or an address in lower case, without a port"
    )]
    Host(String),
    #[error("another cluster is served at {0}")]
    Taken(Place),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Place::Rest => "the rest of all URLs",
            Place::Prefix(name) | Place::Host(name) => name,
        })
    }
}

impl Place {
    /// The path that is taken off requests; empty if none is.
    pub fn path(&self) -> &str {
        match self {
            Place::Prefix(path) => path,
            Place::Rest | Place::Host(_) => "",
        }
    }

    /// Fails if no request could mean the place.
    pub fn check(&self) -> Result<(), PlaceError> {
        match self {
            Place::Rest => Ok(()),
            Place::Prefix(path) if is_prefix(path) => Ok(()),
            Place::Prefix(path) => Err(PlaceError::Path(path.clone())),
            Place::Host(name) if is_host(name) => Ok(()),
            Place::Host(name) => Err(PlaceError::Host(name.clone())),
        }
    }
}

fn is_prefix(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.chars().all(is_plain);
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment))
}

fn is_host(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let is_address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match is_address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok() && !name.contains(char::is_uppercase),
        None => !name.is_empty() && name.chars().all(is_plain),
    }
}

/// The path that was taken off a request's URL, in its extensions: what a client is told to ask next has to begin with it.
#[derive(Clone)]
pub(super) struct Below(pub Arc<str>);

/// The clusters behind a listener. They come and go, also for connections that are open already. Clones share them.
#[derive(Clone)]
pub struct Router(Arc<ArcSwap<Table>>);

#[derive(Clone)]
struct Table {
    rest: Option<Arc<dyn Responder>>,
    hosts: HashMap<Box<str>, Arc<dyn Responder>>,
    prefixes: HashMap<Arc<str>, Arc<dyn Responder>>,
    /// The most segments that a prefix has.
    deepest: usize,
    nowhere: Arc<dyn Responder>,
}

impl Default for Router {
    fn default() -> Self {
        let (hosts, prefixes) = (HashMap::new(), HashMap::new());
        let nowhere = Arc::new(Nowhere);
        Self(Arc::new(ArcSwap::from_pointee(Table { rest: None, hosts, prefixes, deepest: 0, nowhere })))
    }
}

impl Router {
    /// A listener with one cluster, which all requests are for.
    pub fn alone(cluster: impl Responder) -> Self {
        let router = Self::default();
        let table = Table { rest: Some(Arc::new(cluster)), ..Table::clone(&router.0.load()) };
        router.0.store(Arc::new(table));
        router
    }

    /// Serves a cluster at a place from now on. Fails if that is no place, or has a cluster already.
    pub fn add(&self, place: &Place, cluster: &Arc<dyn Responder>) -> Result<(), PlaceError> {
        place.check()?;
        let mut is_taken = false;
        self.0.rcu(|table| {
            let mut table = Table::clone(table);
            let before = table.put(place, Some(cluster.clone()));
            is_taken = before.is_some();
            if is_taken {
                table.put(place, before);
            }
            table
        });
        if is_taken { Err(PlaceError::Taken(place.clone())) } else { Ok(()) }
    }

    /// Serves nothing at the place any more.
    pub fn remove(&self, place: &Place) {
        self.0.rcu(|table| {
            let mut table = Table::clone(table);
            table.put(place, None);
            table
        });
    }

    /// The cluster that a request is for; its URL is then as the cluster knows it. Neither looking for it allocates, nor
    /// does anything else where there is only one.
    pub(super) fn find(&self, request: &mut Request) -> Arc<dyn Responder> {
        let table = self.0.load();
        match &table.rest {
            Some(cluster) if table.hosts.is_empty() && table.prefixes.is_empty() => cluster.clone(),
            _ => table.find(request),
        }
    }
}

impl Table {
    /// Puts a cluster at a place, or nothing. Returns what was there before.
    fn put(&mut self, place: &Place, cluster: Option<Arc<dyn Responder>>) -> Option<Arc<dyn Responder>> {
        let before = match (place, cluster) {
            (Place::Rest, cluster) => std::mem::replace(&mut self.rest, cluster),
            (Place::Host(name), Some(cluster)) => self.hosts.insert(name.as_str().into(), cluster),
            (Place::Host(name), None) => self.hosts.remove(name.as_str()),
            (Place::Prefix(path), Some(cluster)) => self.prefixes.insert(path.as_str().into(), cluster),
            (Place::Prefix(path), None) => self.prefixes.remove(path.as_str()),
        };
        self.deepest = self.prefixes.keys().map(|path| path.matches('/').count()).max().unwrap_or_default();
        before
    }

    /// A host before a path, a longer path before a shorter one, and all before the rest.
    fn find(&self, request: &mut Request) -> Arc<dyn Responder> {
        if let Some(cluster) = host(request).and_then(|host| self.at_host(host)) {
            return cluster.clone();
        }
        let Some((path, cluster)) = self.below(request.uri().path()) else {
            return self.rest.as_ref().unwrap_or(&self.nowhere).clone();
        };
        match without(request.uri(), path.len()) {
            Some(uri) => {
                *request.uri_mut() = uri;
                request.extensions_mut().insert(Below(path.clone()));
                cluster.clone()
            }
            None => self.nowhere.clone(),
        }
    }

    fn at_host(&self, host: &str) -> Option<&Arc<dyn Responder>> {
        if self.hosts.is_empty() {
            return None;
        }
        let host = match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(host.to_ascii_lowercase()),
            false => Cow::Borrowed(host),
        };
        self.hosts.get(&*host)
    }

    /// The longest prefix of the path that a cluster has, and the cluster.
    fn below(&self, path: &str) -> Option<(&Arc<str>, &Arc<dyn Responder>)> {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]).take(self.deepest);
        ends.filter_map(|end| self.prefixes.get_key_value(path.get(..end)?)).last()
    }
}

/// The host that the client has asked, without a port.
fn host(request: &Request) -> Option<&str> {
    if let Some(host) = request.uri().host() {
        return Some(host);
    }
    let text = request.headers().get(header::HOST)?.to_str().ok()?;
    let end = match text.strip_prefix('[') {
        Some(address) => address.find(']').map(|at| at + 2),
        None => text.find(':'),
    };
    Some(&text[..end.unwrap_or(text.len())])
}

/// A URL without so many bytes of its path.
pub(super) fn without(uri: &Uri, length: usize) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().get(length..)?;
    let rest = match rest.starts_with('/') {
        true => PathAndQuery::try_from(rest),
        false => PathAndQuery::try_from(format!("/{rest}")),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest.ok()?);
    Uri::from_parts(parts).ok()
}

/// Answers where no cluster is.
struct Nowhere;

impl Responder for Nowhere {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        let (parts, _) = request.into_parts();
        // As of any request without a credential.
        if parts.version == Version::HTTP_2
            && let Some(connection) = parts.extensions.get::<Arc<ConnectionInfo>>()
            && !connection.is_authenticated()
        {
            connection.go_away();
        }
        Box::pin(std::future::ready(response::failure(&Error::NoCluster, &parts)))
    }
}

#[cfg(test)]
mod tests;
