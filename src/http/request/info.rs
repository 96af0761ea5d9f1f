//! Verb and subject of a request, read from its method and URL alone, as upstream's request info (docs/spec/auth.md, 3.1):
//! whether the resource is served, and in which way, does not matter here. Impersonation, flow control, audit and authorization
//! look at this.

use std::borrow::Cow;

use axum::http::{Method, Uri};

use super::path::{ApiPath, CHANGES, ResourcePath, decode, parse, segments};
use crate::api::error::Error;
use crate::api::options::list::is_watch;
use crate::api::options::query::Query;
use crate::api::options::selector::attributes::QuerySelectors;
use crate::api::options::selector::field::FieldSelector;
use crate::auth::authorizer::Attributes;
use crate::http::branches::paths;
use crate::schema::names::GroupVersion;
use crate::user::User;

/// The verb and subject of a request.
#[derive(Debug)]
pub struct RequestInfo {
    /// The route of the path; `None` if only single documents, or nothing, can be there.
    pub route: Option<ApiPath>,
    verb: Cow<'static, str>,
    /// The subject if it is no resource on a route.
    other: Option<Box<Other>>,
    /// The name that a field selector demands of a collection's objects.
    name: Option<String>,
    /// The selectors of a collection.
    selectors: QuerySelectors,
}

/// The subject of a path on which no route leads to a resource.
#[derive(Debug)]
enum Other {
    /// The decoded path.
    Path(String),
    /// A resource with more behind it than any route has, such as `…/pods/p/status/x`.
    Resource(ResourcePath),
}

impl RequestInfo {
    /// Fails for paths of which upstream cannot say what they ask for.
    pub fn of(method: &Method, uri: &Uri) -> Result<Self, Error> {
        Self::of_query(method, uri, uri.query())
    }

    /// The facts of [`RequestInfo::of`], with a query that may be longer than that of a URI can be.
    pub fn of_query(method: &Method, uri: &Uri, query: Option<&str>) -> Result<Self, Error> {
        let Some(segments) = segments(uri.path()) else { return Ok(Self::of_path(method, uri, None)) };
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        let route = parse(&segments);
        if let ["api", _, "watch" | "proxy"] | ["apis", _, _, "watch" | "proxy"] = *segments {
            return Err(undetermined(uri));
        }
        if let Some(ApiPath::Resource(path)) = &route {
            let (verb, name) = asked(method, query, path);
            let selectors = if path.watch { QuerySelectors::default() } else { selectors(query, verb) };
            return Ok(Self { verb: verb.into(), other: None, name, selectors, route });
        }
        let Some((version, rest)) = below_version(&segments) else {
            return Ok(Self::of_path(method, uri, route));
        };
        let (prefix, rest) = match rest {
            [prefix @ ("watch" | "proxy"), rest @ ..] => (Some(*prefix), rest),
            rest => (None, rest),
        };
        let path = deep(&version, prefix, rest);
        let (verb, name) = asked(method, query, &path);
        let selectors = QuerySelectors::default();
        Ok(Self { route, verb: verb.into(), other: Some(Box::new(Other::Resource(path))), name, selectors })
    }

    fn of_path(method: &Method, uri: &Uri, route: Option<ApiPath>) -> Self {
        let path = decode(uri.path()).unwrap_or(uri.path().into()).into_owned();
        let verb = match paths::is_endpoint(&path) {
            true => paths::VERB.into(),
            false => method.as_str().to_lowercase().into(),
        };
        let selectors = QuerySelectors::default();
        Self { route, verb, other: Some(Box::new(Other::Path(path))), name: None, selectors }
    }

    /// The verb of the API; outside the resource API, the HTTP method in lower case.
    pub fn verb(&self) -> &str {
        &self.verb
    }

    /// [`RequestInfo::verb`] for somebody who keeps it; only HTTP methods are copied.
    pub fn shared_verb(&self) -> Cow<'static, str> {
        self.verb.clone()
    }

    /// The resource that is asked for, whether it is served or not.
    pub fn resource(&self) -> Option<&ResourcePath> {
        match (self.other.as_deref(), &self.route) {
            (Some(Other::Resource(path)), _) | (None, Some(ApiPath::Resource(path))) => Some(path),
            _ => None,
        }
    }

    /// Whether the path is this one, of no resource.
    pub fn is_at(&self, wanted: &str) -> bool {
        matches!(self.other.as_deref(), Some(Other::Path(path)) if path == wanted)
    }

    /// Whether one object, or its status, is to be written.
    pub fn is_plain_write(&self) -> bool {
        let is_part = |path: &ResourcePath| matches!(path.subresource.as_deref(), None | Some("status"));
        matches!(&*self.verb, "create" | "update" | "patch" | "delete")
            && self.resource().is_some_and(is_part)
    }

    /// Whether the request has no end of its own.
    pub fn is_long_running(&self) -> bool {
        let subresource = self.resource().and_then(|path| path.subresource.as_deref()).unwrap_or_default();
        self.resource().is_some_and(|_| matches!(self.verb(), "watch" | "proxy"))
            || matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
            || self.is_at(CHANGES)
    }

    /// The attributes that authorizers judge if this user makes the request.
    pub fn attributes<'a>(&'a self, user: &'a User) -> Attributes<'a> {
        let Some(path) = self.resource() else {
            let path = match self.other.as_deref() {
                Some(Other::Path(path)) => path,
                _ => "",
            };
            return Attributes::of_path(user, &self.verb, path);
        };
        let attributes = Attributes {
            group: path.resource.group(),
            version: path.resource.version(),
            resource: &path.resource.plural,
            subresource: path.subresource.as_deref().unwrap_or_default(),
            name: path.name.as_deref().or(self.name.as_deref()).unwrap_or_default(),
            selectors: &self.selectors,
            ..Attributes::of_path(user, &self.verb, "")
        };
        attributes.within(path.namespace_text())
    }
}

/// The API version of a path, and what follows it, if that is something.
fn below_version<'a>(segments: &'a [&'a str]) -> Option<(GroupVersion, &'a [&'a str])> {
    match segments {
        ["api", version, rest @ ..] if !rest.is_empty() => Some((GroupVersion::new("", version), rest)),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => {
            Some((GroupVersion::new(group, version), rest))
        }
        _ => None,
    }
}

/// The resource of a path that has more segments than any route. Those behind the subresource do not count.
fn deep(version: &GroupVersion, prefix: Option<&str>, segments: &[&str]) -> ResourcePath {
    let (namespace, rest) = match segments {
        ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status" | "finalize", ..]) => {
            (Some((*namespace).to_owned()), rest)
        }
        rest => (None, rest),
    };
    let at = |index: usize| rest.get(index).map(|text| (*text).to_owned());
    ResourcePath {
        resource: version.with_plural(rest.first().copied().unwrap_or_default()),
        namespace,
        name: at(1),
        subresource: at(2).filter(|_| prefix != Some("proxy")),
        below: String::new(),
        watch: prefix == Some("watch"),
        proxy: prefix == Some("proxy"),
    }
}

/// The verb, and the one name that the selector of a collection leaves.
fn asked(method: &Method, query: Option<&str>, path: &ResourcePath) -> (&'static str, Option<String>) {
    let named = path.name.as_deref().is_some_and(|name| !name.is_empty());
    let verb = match *method {
        _ if path.watch => "watch",
        _ if path.proxy => "proxy",
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD => return collection(query),
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    };
    (verb, None)
}

fn collection(query: Option<&str>) -> (&'static str, Option<String>) {
    let Some(query) = query else { return ("list", None) };
    let query = Query::parse(query);
    let verb = if is_watch(&query) { "watch" } else { "list" };
    let selector = query.get("fieldSelector").and_then(|text| FieldSelector::parse(text).ok());
    let name = selector.as_ref().and_then(|selector| selector.requires_exact_match("metadata.name"));
    (verb, name.filter(|name| is_path_segment(name)).map(str::to_owned))
}

/// The selectors of a collection, which most requests have none of.
fn selectors(query: Option<&str>, verb: &str) -> QuerySelectors {
    let query = query.filter(|query| query.contains("Selector"));
    let query = query.filter(|_| matches!(verb, "list" | "watch" | "deletecollection"));
    query.map(|query| QuerySelectors::of(&Query::parse(query))).unwrap_or_default()
}

fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

/// The 500 of upstream's filters for a prefix with nothing behind it.
fn undetermined(uri: &Uri) -> Error {
    // Over HTTP/2 the URI has a host, too.
    let asked = uri.path_and_query().map_or("", |asked| asked.as_str());
    Error::NotAuthorized(format!(
        "failed to create RequestInfo: unable to determine kind and namespace from url, {asked}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: Method, uri: &str) -> RequestInfo {
        RequestInfo::of(&method, &uri.parse().expect("a URI")).expect("determined")
    }

    fn asks(method: Method, uri: &str) -> String {
        let user = User::default();
        let info = info(method, uri);
        let a = info.attributes(&user);
        let part = [a.verb, a.group, a.version, a.namespace, a.resource, a.name, a.subresource, a.path];
        part.join("|")
    }

    #[test]
    fn every_path_asks_for_what_upstream_reads_in_it() {
        for (method, uri, want) in [
            (Method::GET, "/metrics", "get|||||||/metrics"),
            (Method::HEAD, "/a%20b/", "head|||||||/a b/"),
            (Method::GET, "/api/v1", "get|||||||/api/v1"),
            (Method::POST, "/apis/apps/v1", "post|||||||/apis/apps/v1"),
            (Method::GET, "/other/v1/pods", "get|||||||/other/v1/pods"),
            (Method::GET, "/api/v1/nodes", "list||v1||nodes|||"),
            (Method::GET, "/api/v1/nodes?watch=1", "watch||v1||nodes|||"),
            (Method::GET, "/api/v1/nodes?watch=false", "list||v1||nodes|||"),
            (Method::HEAD, "/api/v1/nodes/n", "get||v1||nodes|n||"),
            (Method::GET, "/api/v1/watch/nodes/n", "watch||v1||nodes|n||"),
            (Method::GET, "/api/v1/proxy/nodes/n/x", "proxy||v1||nodes|n||"),
            (Method::DELETE, "/apis/g/v1/proxy/widgets", "proxy|g|v1||widgets|||"),
            (Method::GET, "/apis/g/v1/namespaces/t/proxy/x", "get|g|v1|t|proxy|x||"),
            (Method::GET, "/apis/g/v1/namespaces/t/watch", "list|g|v1|t|watch|||"),
            (Method::POST, "/apis/g/v1/watch/watch/x", "watch|g|v1||watch|x||"),
            (Method::GET, "/api/v1/namespaces/t", "get||v1|t|namespaces|t||"),
            (Method::PUT, "/api/v1/namespaces/t/finalize", "update||v1|t|namespaces|t|finalize|"),
            (Method::GET, "/api/v1/namespaces/t/pods/p/log", "get||v1|t|pods|p|log|"),
            (Method::GET, "/api/v1/namespaces/t/pods/p/proxy/x/y", "get||v1|t|pods|p|proxy|"),
            (
                Method::POST,
                "/api/v1/namespaces/t/serviceaccounts/s/token",
                "create||v1|t|serviceaccounts|s|token|",
            ),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/t/deployments",
                "deletecollection|apps|v1|t|deployments|||",
            ),
            (Method::OPTIONS, "/api/v1/pods", "||v1||pods|||"),
            (Method::GET, "/api/v1/pods?fieldSelector=metadata.name%3Dp", "list||v1||pods|p||"),
            (Method::GET, "/api/v1/pods?fieldSelector=metadata.name%3D..", "list||v1||pods|||"),
        ] {
            assert_eq!(asks(method, uri), want, "{uri}");
        }
    }

    #[test]
    fn a_prefix_alone_asks_for_nothing() {
        let uri = "/api/v1/watch".parse().expect("a URI");
        assert!(matches!(RequestInfo::of(&Method::GET, &uri), Err(Error::NotAuthorized(_))));
    }
}
