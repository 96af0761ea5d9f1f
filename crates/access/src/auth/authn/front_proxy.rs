//! The headers by which a front proxy says whose request it passes on.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::user::User;

/// Upstream removes these from every request, whatever the configured names are.
const USUAL: &str = "x-remote-";

/// The names of the headers, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    pub username_headers: Vec<HeaderName>,
    pub uid_headers: Vec<HeaderName>,
    pub group_headers: Vec<HeaderName>,
    pub extra_prefixes: Vec<String>,
    /// The common names of proxies' certificates; empty for any.
    pub allowed_names: Vec<String>,
}

impl FrontProxy {
    /// The user that the headers name, which are removed. `None` if they name nobody.
    pub fn take_user(&self, headers: &mut HeaderMap) -> Option<User> {
        let name = first(headers, &self.username_headers)?;
        let uid = first(headers, &self.uid_headers).unwrap_or_default();
        let all = |name| headers.get_all(name).iter().map(text).filter(|value| !value.is_empty());
        let groups = self.group_headers.iter().flat_map(all).collect();
        let user = User { name, uid, groups, extra: self.extra(headers) };
        self.forget(headers);
        Some(user.authenticated())
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    extra.entry(unescaped(key)).or_default().push(text(value));
                }
            }
        }
        extra
    }

    fn forget(&self, headers: &mut HeaderMap) {
        for name in self.username_headers.iter().chain(&self.uid_headers).chain(&self.group_headers) {
            headers.remove(name);
        }
        let is_extra =
            |name: &HeaderName| self.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(prefix));
        remove(headers, is_extra);
    }
}

/// Removes the headers that front proxies usually set.
pub fn forget(headers: &mut HeaderMap) {
    remove(headers, |name| name.as_str().starts_with(USUAL));
}

fn remove(headers: &mut HeaderMap, unwanted: impl Fn(&HeaderName) -> bool) {
    while let Some(name) = headers.keys().find(|name| unwanted(name)).cloned() {
        headers.remove(&name);
    }
}

fn first(headers: &HeaderMap, names: &[HeaderName]) -> Option<String> {
    names.iter().filter_map(|name| headers.get(name)).map(text).find(|value| !value.is_empty())
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The key of an extra field, percent-decoded; one with a malformed escape stays as it is.
pub fn unescaped(key: &str) -> String {
    let is_escape =
        |at: usize| key.get(at + 1..at + 3).is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    if key.match_indices('%').all(|(at, _)| is_escape(at)) {
        percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned()
    } else {
        key.to_owned()
    }
}
