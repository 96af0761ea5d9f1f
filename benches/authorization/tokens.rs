//! From a request's headers to its user: a service account's token that the server has not seen, and one that it knows.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, header};
use rowplane::auth::authn::{Authenticator, By, Settings, Shown};
use rowplane::auth::jwt::keys::SigningKey;
use rowplane::auth::pki::temporary_token_key;
use rowplane::auth::service_accounts::issuer::Grant;
use rowplane::auth::service_accounts::{Issuer, Keys, Resources, Verifier};
use rowplane::auth::token_file::Tokens;
use rowplane::cache::Cache;
use rowplane::cache::hidden_rows::HiddenRows;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{Change, Expect, HighWaterMark, Key, Mutation, memory};
use rowplane::tree::json;

use crate::timing::{Measured, measure};

/// More than the server remembers, so that a token that comes round again is a new one.
const TOKENS: usize = 5000;
const ISSUER: &str = "https://kubernetes.default.svc";
const PLURALS: [&str; 4] = ["serviceaccounts", "secrets", "pods", "nodes"];

pub async fn tokens(duration: Duration) {
    let backend = memory::open();
    let mut names: Vec<_> = PLURALS.iter().map(|plural| GroupResource::new("", plural)).collect();
    names.push(HiddenRows::resource("serviceaccountkeys"));
    let ids = backend.resource_ids(&names).await.expect("ids");
    let resources =
        Resources { accounts: ids[0], secrets: ids[1], pods: ids[2], nodes: ids[3], keys: ids[4] };
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot", "namespace": "t", "uid": "u-1"}});
    let draft = Draft::of_json("t", "robot", account.to_string().into());
    let change = Change::Put { uid: "u-1".into(), stored_version: "v1".into(), value: draft.into() };
    let account = Mutation::new(Key::new(resources.accounts, "t", "robot"), Expect::Absent, change);
    backend.commit(&[account], Revision(0)).await.expect("committed");
    let mark = Arc::new(HighWaterMark::default());
    let (cache, _sink) =
        Cache::start(backend, Draft::parse, &ids, mark, &Runtime::default(), &Default::default())
            .await
            .expect("a cache");

    let signing = SigningKey::of_pem(temporary_token_key().expect("a key").as_bytes()).expect("a key");
    let keys = Keys::new(signing, Vec::new(), &[]);
    let issuers = vec![ISSUER.to_owned()];
    let issuer = Arc::new(Issuer { issuers, keys, max_seconds: None, extended: None, jwks_uri: None });
    let audiences: Arc<[String]> = [ISSUER.to_owned()].into();
    let runtime = Runtime::default();
    let now = runtime.clock.timestamp().as_second();
    let headers: Vec<HeaderMap> = (0..TOKENS)
        .map(|n| {
            let id = n.to_string();
            let grant = Grant {
                namespace: "t",
                account: "robot",
                uid: "u-1",
                audiences: &audiences,
                now,
                seconds: 3600,
                warn_after: None,
                id: &id,
                objects: Vec::new(),
            };
            let token = issuer.issue_here(&grant).expect("a token");
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_str(&format!("Bearer {token}")).expect("a header");
            headers.insert(header::AUTHORIZATION, value);
            headers
        })
        .collect();
    let chain = Authenticator::new(Settings { audiences, ..Settings::default() }, Tokens::default());
    let (verifier, _used) = Verifier::new(issuer, cache, resources, &runtime);
    chain.know_service_accounts(verifier);
    let ask = |headers: &HeaderMap| {
        let mut headers = headers.clone();
        let shown = Shown {
            certified: None,
            headers: &mut headers,
            path: "/api/v1/namespaces/t/configmaps",
            by: By::Newest,
        };
        let found = chain.authenticate(shown).now_or_never().expect("nobody is waited for");
        found.expect("a user").user
    };
    assert_eq!(ask(&headers[0]).name, "system:serviceaccount:t:robot");
    let next = Cell::new(0);
    let first = || {
        next.set((next.get() + 1) % TOKENS);
        ask(&headers[next.get()])
    };
    println!("tokens of service accounts (ES256), from the header to the user");
    let lines: [(&str, Measured); 3] = [
        ("copying the headers, in both below", measure(duration, || headers[0].clone())),
        ("a new token", measure(duration, first)),
        ("a known token", measure(duration, || ask(&headers[0]))),
    ];
    Measured::print(&lines);
}
