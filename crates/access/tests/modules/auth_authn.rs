//! Tests of `auth::authn`.

use std::sync::Arc;

use http::HeaderMap;
use rcgen::{CertificateParams, DnType, KeyPair};
use rowplane_access::auth::authn::{
    Anonymous, Authenticator, By, CREDENTIAL_ID, Certified, FrontProxy, Settings, Shown, forget_credentials,
    user_of_certificate,
};
use rowplane_access::auth::token_file::Tokens;
use rowplane_objects::user::User;
use rowplane_x509::Certificate;

fn certificate(names: &[(DnType, &str)]) -> Certificate {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in names {
        params.distinguished_name.push(kind.clone(), *value);
    }
    let key = KeyPair::generate().unwrap();
    Certificate::parse(params.self_signed(&key).unwrap().der()).unwrap()
}

fn uid_attribute() -> DnType {
    DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2])
}

#[test]
fn common_name_is_the_user_and_organization_the_group() {
    let der = certificate(&[
        (DnType::CommonName, "alice"),
        (DnType::OrganizationName, "system:masters"),
        (uid_attribute(), "u-1"),
    ]);
    let user = user_of_certificate(&der).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "u-1"));
    assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
}

#[test]
fn a_certificate_without_a_name_is_nobody_and_one_with_an_empty_uid_is_refused() {
    let der = certificate(&[(DnType::OrganizationName, "devs")]);
    assert_eq!(user_of_certificate(&der), Ok(None));
    let der = certificate(&[(DnType::CommonName, "alice"), (uid_attribute(), "")]);
    assert_eq!(user_of_certificate(&der), Err("UID cannot be an empty string"));
}

fn chain(csv: &str) -> Authenticator {
    Authenticator::new(Settings::default(), Tokens::parse(csv).unwrap())
}

fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

/// The name of the user, or why there is none.
async fn ask(chain: &Authenticator, list: &[(&'static str, &str)]) -> Result<String, String> {
    let mut headers = headers(list);
    let shown = Shown { certified: None, headers: &mut headers, path: "/api", by: By::Newest };
    match chain.authenticate(shown).await {
        Ok(found) => Ok(found.user.name.clone()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn bearer_tokens() {
    let chain = chain("secret,bob,7,devs\n");
    assert_eq!(ask(&chain, &[("authorization", "bearer secret")]).await, Ok("bob".into()));
    assert_eq!(ask(&chain, &[("authorization", " BEARER secret more")]).await, Ok("bob".into()));
    let wrong = ask(&chain, &[("authorization", "Bearer wrong")]).await;
    assert_eq!(wrong, Err("invalid bearer token".into()));
    for absent in ["Basic c2VjcmV0", "Bearer", "Bearer ", "", "Bearer  secret"] {
        let nobody = ask(&chain, &[("authorization", absent)]).await;
        assert_eq!(nobody, Ok("system:anonymous".into()), "{absent:?}");
    }
    assert_eq!(ask(&chain, &[]).await, Ok("system:anonymous".into()));
}

#[tokio::test]
async fn two_blanks_before_a_token_are_told() {
    let mut headers = headers(&[("authorization", "Bearer  secret")]);
    let shown = Shown { certified: None, headers: &mut headers, path: "/api", by: By::Newest };
    let found = chain("").authenticate(shown).await.unwrap();
    assert_eq!(
        found.notes.warnings(),
        ["the provided Authorization header contains extra space before the bearer token, and is ignored"]
    );
}

#[tokio::test]
async fn tokens_in_subprotocols() {
    let chain = chain("secret,bob,7\n");
    let offer = async |protocols: &str| {
        let list =
            [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-protocol", protocols)];
        ask(&chain, &list).await
    };
    let token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    assert_eq!(offer(&format!("v5.channel.k8s.io, {token}")).await, Ok("bob".into()));
    assert_eq!(offer(token).await, Err("missing additional subprotocol".into()));
    let twice = offer(&format!("a,{token},{token}")).await;
    assert_eq!(twice, Err("multiple base64.bearer.authorization tokens specified".into()));
    let malformed = offer(&format!("a,{token}=")).await;
    assert_eq!(malformed, Err("invalid base64.bearer.authorization token encoding".into()));
    assert_eq!(offer("a,b").await, Ok("system:anonymous".into()));
    let plain = ask(&chain, &[("sec-websocket-protocol", token)]).await;
    assert_eq!(plain, Ok("system:anonymous".into()), "no WebSocket");
}

#[tokio::test]
async fn an_accepted_token_is_taken_out_of_the_headers() {
    let token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    let mut headers = headers(&[
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-protocol", &format!("{token},v5.channel.k8s.io")),
        ("x-remote-user", "root"),
    ]);
    let shown = Shown { certified: None, headers: &mut headers, path: "/api", by: By::Newest };
    chain("secret,bob,7\n").authenticate(shown).await.unwrap();
    forget_credentials(&mut headers);
    assert_eq!(headers["sec-websocket-protocol"], "v5.channel.k8s.io");
    assert!(!headers.contains_key("x-remote-user"));
}

fn certified(user: Result<Option<&str>, &str>) -> Certified {
    let user = match user {
        Ok(name) => Ok(name.map(|name| Arc::new(User { name: name.into(), ..User::default() }))),
        Err(why) => Err(why.into()),
    };
    Certified { user, proxy: None }
}

#[tokio::test]
async fn a_certificate_comes_before_a_token_and_a_token_after_a_bad_certificate() {
    let chain = chain("secret,bob,7\n");
    for (certificate, token, want) in [
        (Ok(Some("alice")), "wrong", Ok("alice")),
        (Ok(None), "secret", Ok("bob")),
        (Err("unknown authority"), "secret", Ok("bob")),
        (Err("unknown authority"), "wrong", Err("[unknown authority, invalid bearer token]")),
    ] {
        let mut headers = headers(&[("authorization", &format!("Bearer {token}"))]);
        let certified = Some(certified(certificate));
        let answer =
            chain.authenticate(Shown { certified, headers: &mut headers, path: "/", by: By::Newest }).await;
        let answer = answer.map(|found| found.user.name.clone()).map_err(|error| error.to_string());
        assert_eq!(answer, want.map(str::to_owned).map_err(str::to_owned));
    }
    let certified = Some(certified(Err("unknown authority")));
    let shown = Shown { certified, headers: &mut HeaderMap::new(), path: "/version", by: By::Newest };
    assert!(chain.authenticate(shown).await.is_err(), "a bad credential is not anonymous");
}

#[tokio::test]
async fn front_proxies_speak_for_others() {
    let names = |list: &[&str]| list.iter().map(|name| name.parse().unwrap()).collect();
    let front_proxy = FrontProxy {
        username_headers: names(&["X-Remote-User"]),
        uid_headers: names(&["X-Remote-Uid"]),
        group_headers: names(&["X-Remote-Group"]),
        extra_prefixes: vec!["x-remote-extra-".into()],
        allowed_names: Vec::new(),
    };
    let settings = Settings { front_proxy: Some(front_proxy), ..Settings::default() };
    let chain = Authenticator::new(settings, Tokens::default());
    let list = [
        ("x-remote-user", "jane"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-extra-scopes%2fx", "one"),
        ("x-remote-extra-scopes%2fx", "two"),
        ("x-remote-extra-bad%zz", "v"),
    ];
    let mut named = headers(&list);
    let proxy = Certified { proxy: Some(Ok(())), ..certified(Ok(Some("proxy"))) };
    let shown = Shown { certified: Some(proxy.clone()), headers: &mut named, path: "/", by: By::Newest };
    let jane = chain.authenticate(shown).await.unwrap().user;
    assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "7"));
    assert_eq!(jane.groups, ["a", "b", "system:authenticated"]);
    assert_eq!(jane.extra["scopes/x"], ["one", "two"]);
    assert_eq!(jane.extra["bad%zz"], ["v"]);
    assert!(named.is_empty());
    // Without a name the proxy is a user as others.
    let shown = Shown { certified: Some(proxy), headers: &mut HeaderMap::new(), path: "/", by: By::Newest };
    assert_eq!(chain.authenticate(shown).await.unwrap().user.name, "proxy");
    // Who is no proxy speaks for himself.
    let other = Certified { proxy: Some(Err("not allowed".into())), ..certified(Ok(Some("mallory"))) };
    let shown = Shown { certified: Some(other), headers: &mut headers(&list), path: "/", by: By::Newest };
    assert_eq!(chain.authenticate(shown).await.unwrap().user.name, "mallory");
}

#[tokio::test]
async fn nobody_is_anonymous_where_that_is_not_allowed() {
    let anonymous = Anonymous::At(vec!["/livez".into()]);
    let chain = Authenticator::new(Settings { anonymous, ..Settings::default() }, Tokens::default());
    for (path, admitted) in [("/livez", true), ("/livez/ping", false), ("/readyz", false)] {
        let shown = Shown { certified: None, headers: &mut HeaderMap::new(), path, by: By::Newest };
        assert_eq!(chain.authenticate(shown).await.is_ok(), admitted, "{path}");
    }
}
