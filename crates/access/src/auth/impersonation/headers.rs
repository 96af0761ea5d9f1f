//! The headers that name the user whom a request wants to be made as.

use http::{HeaderMap, HeaderValue};

use crate::auth::authn::unescaped;
use crate::gotext::quote;
use crate::user::User;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// 400: something is asked for beside a user, but no user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requested {0} without impersonating a user name")]
pub struct NoName(String);

/// Whether the headers name anybody else.
pub fn is_requested(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

/// The user that the headers name, exactly as they do; the headers are removed. `None` if nobody is to be impersonated.
pub fn requested(headers: &mut HeaderMap) -> Result<Option<User>, NoName> {
    if !is_requested(headers) {
        return Ok(None);
    }
    let first = |name| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = User { name: first(USER), uid: first(UID), ..User::default() };
    wanted.groups = headers.get_all(GROUP).iter().map(text).collect();
    for (name, value) in headers.iter() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            wanted.extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    if wanted.name.is_empty() {
        let User { uid, groups, extra, .. } = &wanted;
        let is_asked = !uid.is_empty() || !groups.is_empty() || !extra.is_empty();
        return if is_asked { Err(NoName(printed(&wanted))) } else { Ok(None) };
    }
    for name in [USER, UID, GROUP] {
        headers.remove(name);
    }
    while let Some(name) = headers.keys().find(|name| name.as_str().starts_with(EXTRA)).cloned() {
        headers.remove(&name);
    }
    Ok(Some(wanted))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The user as Go prints it with `%#v`.
fn printed(user: &User) -> String {
    let list = |values: &[String]| {
        let values: Vec<String> = values.iter().map(|value| quote(value)).collect();
        format!("{{{}}}", values.join(", "))
    };
    let groups = match &*user.groups {
        [] => "[]string(nil)".to_owned(),
        groups => format!("[]string{}", list(groups)),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pair =
            |(key, values): (&String, &Vec<String>)| format!("{}:[]string{}", quote(key), list(values));
        let pairs: Vec<String> = user.extra.iter().map(pair).collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}
