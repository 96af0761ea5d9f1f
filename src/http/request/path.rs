//! Parses URLs: a path names a resource, a discovery document, or nothing.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use crate::gotext::utf8;
use crate::schema::names::{GroupVersion, Gvr};

/// The path of the stream of changes.
pub const CHANGES: &str = "/rowplane/changes";

/// A path below `/api` or `/apis`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiPath {
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/<group>`.
    Group {
        group: String,
    },
    /// `/api/v1`, `/apis/<group>/<version>`.
    GroupVersion(GroupVersion),
    Resource(ResourcePath),
}

/// The URL of a collection, an object, or a subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    pub resource: Gvr,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// The path behind the subresource `proxy`, without the slashes around it.
    pub below: String,
    /// Whether the path is below the deprecated `/watch/`.
    pub watch: bool,
    /// Whether the path is below `/proxy/`, where upstream has had proxies before there were subresources of that name. A
    /// definition may have that plural, too: upstream takes the first segment of the path for the verb all the same.
    pub proxy: bool,
}

/// The decoded segments of a path; `None` if an escape is malformed.
pub fn segments(path: &str) -> Option<Vec<Cow<'_, str>>> {
    let path = path.trim_matches('/');
    let has_escapes = memchr(b'%', path.as_bytes()).is_some();
    let mut segments = Vec::with_capacity(8);
    let mut start = 0;
    for end in memchr_iter(b'/', path.as_bytes()).chain([path.len()]) {
        let segment = &path[start..end];
        segments.push(if has_escapes { decode(segment)? } else { segment.into() });
        start = end + 1;
    }
    Some(segments)
}

/// The place in the API that the segments of a path name; `None` if it is not a path of the resource API. Only the core group
/// has no name, and no place below `/apis`.
pub fn parse(segments: &[&str]) -> Option<ApiPath> {
    match segments {
        ["apis", "", ..] => None,
        ["api"] => Some(ApiPath::CoreVersions),
        ["apis"] => Some(ApiPath::Groups),
        ["apis", group] => Some(ApiPath::Group { group: (*group).to_owned() }),
        ["api", version] => Some(ApiPath::GroupVersion(GroupVersion::new("", version))),
        ["apis", group, version] => Some(ApiPath::GroupVersion(GroupVersion::new(group, version))),
        ["api", version, rest @ ..] => resource(&GroupVersion::new("", version), rest),
        ["apis", group, version, rest @ ..] => resource(&GroupVersion::new(group, version), rest),
        _ => None,
    }
}

fn resource(version: &GroupVersion, segments: &[&str]) -> Option<ApiPath> {
    let (prefix, segments) = match segments {
        [prefix @ ("watch" | "proxy"), rest @ ..] if !rest.is_empty() => (*prefix, rest),
        other => ("", other),
    };
    let (watch, proxy) = (prefix == "watch", prefix == "proxy");
    let owned = |text: &&str| Some((*text).to_owned());
    let (namespace, plural, name, subresource) = match segments {
        // A namespace and its subresources. Upstream's request info distinguishes them from the contents of a namespace
        // in the same way.
        ["namespaces"] => (None, "namespaces", None, None),
        ["namespaces", name] => (None, "namespaces", Some(name), None),
        ["namespaces", name, sub @ ("status" | "finalize")] => (None, "namespaces", Some(name), Some(sub)),
        ["namespaces", namespace, plural] => (Some(namespace), *plural, None, None),
        ["namespaces", namespace, plural, name] => (Some(namespace), *plural, Some(name), None),
        ["namespaces", namespace, plural, name, sub] => (Some(namespace), *plural, Some(name), Some(sub)),
        [plural] => (None, *plural, None, None),
        [plural, name] => (None, *plural, Some(name), None),
        [plural, name, sub] => (None, *plural, Some(name), Some(sub)),
        ["namespaces", namespace, plural, name, sub @ "proxy", ..] => {
            (Some(namespace), *plural, Some(name), Some(sub))
        }
        [plural, name, sub @ "proxy", ..] => (None, *plural, Some(name), Some(sub)),
        _ => return None,
    };
    let below = segments.get(if namespace.is_some() { 5 } else { 3 }..).unwrap_or_default().join("/");
    Some(ApiPath::Resource(ResourcePath {
        resource: version.with_plural(plural),
        namespace: namespace.and_then(owned),
        name: name.and_then(owned),
        subresource: subresource.filter(|_| !proxy).and_then(owned),
        below,
        watch,
        proxy,
    }))
}

/// Decodes escapes; `None` if one is malformed. Upstream shows each byte that is not UTF-8 as U+FFFD; no name contains
/// such bytes.
pub fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(segment.into());
    }
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = segment.get(at + 1..at + 3)?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    Some(utf8(&out).into_owned().into())
}

impl ResourcePath {
    /// The namespace for messages and logs; empty if there is none.
    pub fn namespace_text(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Option<ApiPath> {
        let segments = segments(path)?;
        super::parse(&segments.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    fn named(path: &str) -> String {
        match parse(path) {
            Some(ApiPath::Resource(p)) => format!(
                "{}|{}|{}|{}|{}|{}|{}",
                p.resource.group(),
                p.resource.version(),
                p.namespace.unwrap_or("-".into()),
                p.resource.plural,
                p.name.unwrap_or("-".into()),
                p.subresource.unwrap_or("-".into()),
                p.watch
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn resources() {
        let cases = [
            ("/api/v1/pods", "|v1|-|pods|-|-|false"),
            ("/api/v1/namespaces/t/pods/x/status", "|v1|t|pods|x|status|false"),
            ("/api/v1/namespaces/t", "|v1|-|namespaces|t|-|false"),
            ("/api/v1/namespaces/t/finalize", "|v1|-|namespaces|t|finalize|false"),
            ("/apis/apps/v1/namespaces/t/deployments/", "apps|v1|t|deployments|-|-|false"),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
                "rbac.authorization.k8s.io|v1|-|clusterroles|a:b|-|false",
            ),
            ("/api/v1/watch/namespaces/t/configmaps/x", "|v1|t|configmaps|x|-|true"),
            ("/api/v1/pods/%ff%C3%A9", "|v1|-|pods|\u{fffd}é|-|false"),
            ("/api/v1/namespaces/t/pods/https:x:80/proxy/a//b/", "|v1|t|pods|https:x:80|proxy|false"),
            ("/api/v1/nodes/n/proxy/stats/summary", "|v1|-|nodes|n|proxy|false"),
        ];
        for (path, want) in cases {
            assert_eq!(named(path), want, "{path}");
        }
    }

    #[test]
    fn what_is_below_a_proxy() {
        for (path, want) in [
            ("/api/v1/namespaces/t/pods/p/proxy", ""),
            ("/api/v1/namespaces/t/pods/p/proxy/", ""),
            ("/api/v1/namespaces/t/pods/p/proxy/a//b%20c/", "a//b c"),
            ("/api/v1/nodes/n/proxy/stats/summary", "stats/summary"),
            ("/api/v1/namespaces/t/finalize", ""),
        ] {
            let Some(ApiPath::Resource(found)) = parse(path) else { panic!("{path}") };
            assert_eq!(found.below, want, "{path}");
        }
    }

    #[test]
    fn what_is_not_a_resource() {
        assert_eq!(parse("/apis/"), Some(ApiPath::Groups));
        assert_eq!(parse("/api/v1"), Some(ApiPath::GroupVersion(GroupVersion::fixed("v1"))));
        for path in ["/", "/other", "/api/v1/a/b/c/d", "/api/v1/pods/%zz", "/api/v1/pods/%4"] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
