//! The head of an audit event: the part about its request that is known from the beginning on.

use std::borrow::Cow;
use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use http::{HeaderValue, Uri};
use jiff::Timestamp;

use super::bounded::shortened;
use super::json::{key, plain_text, plain_texts, text, time, user};
use super::policy::Level;
use crate::tree::Text;
use crate::user::User;

/// The facts that are known when the request comes in, and do not change. They are shared with the request where possible,
/// so that to make a head costs little.
#[derive(Clone, Debug)]
pub struct Head {
    pub level: Level,
    pub audit_id: Option<HeaderValue>,
    pub uri: Uri,
    /// The query, if it is too long for the URI.
    pub long_query: Option<Arc<str>>,
    pub verb: Cow<'static, str>,
    /// `None` if nobody was authenticated.
    pub user: Option<Arc<User>>,
    pub sources: Sources,
    /// The header as the client sent it; [`Head::user_agent`] is what is recorded.
    pub sent_user_agent: Option<HeaderValue>,
    pub received: Timestamp,
    /// The JSON that all events of the request share, made with the first of them.
    pub text: OnceLock<HeadText>,
}

/// The addresses that a request came through: those that proxies name, the client's first, and the peer. Proxies are
/// believed, as upstream believes them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    named: Vec<Text>,
    /// `None` if there is no peer, or if it is the last of those that are named.
    peer: Option<Text>,
}

/// JSON of a [`Head`]: its members, each behind a comma, in four parts. Members that differ between events stand between
/// the parts and behind the last.
#[derive(Clone, Debug)]
pub struct HeadText {
    text: Vec<u8>,
    /// The end of the first part, whose last member is the key of the stage.
    stage: usize,
    /// The end of the second part, whose last member is the user.
    user: usize,
    /// The end of the third part, whose last member is the user agent; the fourth part is the time.
    agent: usize,
}

/// The text of an IP address; an IPv4 address that is mapped to IPv6 is an IPv4 address.
pub fn address(ip: IpAddr) -> Text {
    ip.to_canonical().to_string().into()
}

impl Sources {
    /// The arguments are the values of two headers, empty if they are not there, and the [`address`] of the peer.
    pub fn of(forwarded_for: &str, real_ip: &str, peer: Option<&Text>) -> Self {
        let parse = |text: &str| text.trim().parse().ok().map(address);
        let mut named = Vec::new();
        if !forwarded_for.is_empty() {
            named.extend(forwarded_for.split(',').filter_map(parse));
        }
        if !real_ip.is_empty() {
            named.extend(parse(real_ip).filter(|ip| !named.contains(ip)));
        }
        let peer = peer.filter(|peer| named.last() != Some(peer)).cloned();
        Self { named, peer }
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.named.iter().chain(&self.peer).map(Text::as_str)
    }
}

impl Head {
    /// The path and the query.
    pub fn request_uri(&self) -> Cow<'_, str> {
        match &self.long_query {
            None => self.uri.path_and_query().map_or(self.uri.path(), |uri| uri.as_str()).into(),
            Some(query) => format!("{}?{query}", self.uri.path()).into(),
        }
    }

    pub fn audit_id(&self) -> Cow<'_, str> {
        lossy(self.audit_id.as_ref())
    }

    /// The header, shortened as upstream does.
    pub fn user_agent(&self) -> Cow<'_, str> {
        shortened(lossy(self.sent_user_agent.as_ref()))
    }

    pub fn text(&self) -> &HeadText {
        self.text.get_or_init(|| {
            let mut text = Vec::with_capacity(640);
            let out = &mut text;
            plain_text!(out, "level", self.level.as_str());
            text!(out, "auditID", &self.audit_id());
            key!(out, "stage");
            let stage = out.len();
            text!(out, "requestURI", &self.request_uri());
            text!(out, "verb", &self.verb);
            key!(out, "user");
            match &self.user {
                Some(user) => known_user(out, user),
                None => user(out, None),
            }
            let user = out.len();
            if self.sources.iter().next().is_some() {
                key!(out, "sourceIPs");
                plain_texts(out, self.sources.iter());
            }
            if self.sent_user_agent.as_ref().is_some_and(|agent| !agent.is_empty()) {
                text!(out, "userAgent", &self.user_agent());
            }
            let agent = out.len();
            time!(out, "requestReceivedTimestamp", self.received);
            HeadText { text, stage, user, agent }
        })
    }
}

impl HeadText {
    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn until_stage(&self) -> &[u8] {
        &self.text[..self.stage]
    }

    pub fn until_user(&self) -> &[u8] {
        &self.text[self.stage..self.user]
    }

    pub fn until_agent(&self) -> &[u8] {
        &self.text[self.user..self.agent]
    }

    pub fn time(&self) -> &[u8] {
        &self.text[self.agent..]
    }
}

thread_local! {
    /// The last user that a thread has written, and the JSON: most requests of a moment are made by few users.
    /// Found again by the user's value alone, so it is right for every cluster.
    static LAST_USER: RefCell<(Arc<User>, Vec<u8>)> = RefCell::default();
}

/// Appends a user, whose JSON does not change.
fn known_user(out: &mut Vec<u8>, wanted: &Arc<User>) {
    LAST_USER.with_borrow_mut(|(last, json)| {
        if json.is_empty() || !Arc::ptr_eq(last, wanted) {
            last.clone_from(wanted);
            json.clear();
            user(json, Some(wanted));
        }
        out.extend_from_slice(json);
    });
}

fn lossy(header: Option<&HeaderValue>) -> Cow<'_, str> {
    header.map_or(Cow::Borrowed(""), |value| String::from_utf8_lossy(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_is_written_as_himself() {
        let named = |name: &str| Arc::new(User { name: name.to_owned(), ..User::default() });
        let (a, b) = (named("a"), named("b"));
        let mut out = Vec::new();
        for wanted in [&a, &a, &b, &a, &named("a"), &Arc::default()] {
            known_user(&mut out, wanted);
        }
        let [a, b] = [r#"{"username":"a"}"#, r#"{"username":"b"}"#];
        assert_eq!(String::from_utf8(out).expect("text"), [a, a, b, a, a, "{}"].concat());
    }

    #[test]
    fn addresses_of_proxies_and_of_the_peer() {
        let shown = |forwarded: &str, real: &str, peer: &str| {
            let peer = peer.parse().ok().map(address);
            Sources::of(forwarded, real, peer.as_ref()).iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("", "", "10.0.0.1"), "10.0.0.1");
        assert_eq!(shown("1.1.1.1, x, 2.2.2.2", "3.3.3.3", "10.0.0.1"), "1.1.1.1 2.2.2.2 3.3.3.3 10.0.0.1");
        assert_eq!(shown("1.1.1.1,2.2.2.2", "1.1.1.1", "2.2.2.2"), "1.1.1.1 2.2.2.2");
        assert_eq!(shown("::ffff:1.1.1.1", "1.1.1.1", "10.0.0.1"), "1.1.1.1 10.0.0.1");
        assert_eq!(shown("", "", "::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(shown("", "", ""), "");
    }
}
