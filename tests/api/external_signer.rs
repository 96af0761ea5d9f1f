//! Tokens that an external signer signs (`--service-account-signing-endpoint`), with a stand-in for the service.

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::client::Answer;
use crate::support::database::Database;
use crate::support::grpc::{Mood, Service, field, put, put_number, serve};
use crate::support::server::{Setup, TestServer};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const TOKENS: &str = "/api/v1/namespaces/t/serviceaccounts/robot/token";

/// The service of a socket, until it is dropped.
struct Signer {
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    mood: Mutex<Mood>,
    /// All keys, of which the last one signs; whether documents leave a key out.
    keys: Mutex<Vec<(String, KeyPair, bool)>>,
    /// The header of tokens, if it is not as it should be.
    header: Mutex<Option<Value>>,
    longest: AtomicI64,
    fetches: AtomicUsize,
}

impl Signer {
    fn start(socket: &Path) -> Self {
        let state = Arc::new(State { longest: AtomicI64::new(7200), ..State::default() });
        let signer = Self { _tasks: serve(socket, state.clone()), state };
        signer.add("first", false);
        signer
    }

    fn add(&self, id: &str, is_hidden: bool) {
        let key = KeyPair::generate().expect("a key");
        self.state.keys.lock().expect("keys").push((id.to_owned(), key, is_hidden));
    }

    fn remove(&self, id: &str) {
        self.state.keys.lock().expect("keys").retain(|(known, ..)| known != id);
    }

    fn set(&self, mood: Mood) {
        *self.state.mood.lock().expect("mood") = mood;
    }

    fn sign_with_header(&self, header: Option<Value>) {
        *self.state.header.lock().expect("a header") = header;
    }

    fn fetches(&self) -> usize {
        self.state.fetches.load(Ordering::SeqCst)
    }
}

impl Service for State {
    fn mood(&self) -> &Mutex<Mood> {
        &self.mood
    }

    fn call(&self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, &'static str)> {
        let keys = self.keys.lock().expect("keys");
        let mut out = Vec::new();
        match path {
            "/v1.ExternalJWTSigner/Metadata" => {
                put_number(&mut out, 1, self.longest.load(Ordering::SeqCst).unsigned_abs());
            }
            "/v1.ExternalJWTSigner/FetchKeys" => {
                self.fetches.fetch_add(1, Ordering::SeqCst);
                for (id, key, is_hidden) in &*keys {
                    let mut one = Vec::new();
                    put(&mut one, 1, id.as_bytes());
                    put(&mut one, 2, &rcgen::PublicKeyData::subject_public_key_info(key));
                    put_number(&mut one, 3, u64::from(*is_hidden));
                    put(&mut out, 1, &one);
                }
                let mut made = Vec::new();
                put_number(&mut made, 1, 1_700_000_000);
                put(&mut out, 2, &made);
                put_number(&mut out, 3, 600);
            }
            "/v1.ExternalJWTSigner/Sign" => {
                let (id, key, _) = keys.last().expect("a key");
                let header = self.header.lock().expect("a header").clone();
                let header = header.unwrap_or_else(|| json!({"alg": "ES256", "kid": id, "typ": "JWT"}));
                let header = URL_SAFE_NO_PAD.encode(header.to_string());
                let claims = String::from_utf8(field(message, 1)).expect("text");
                let random = SystemRandom::new();
                let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.serialize_der());
                let signature = pair.expect("a key").sign(&random, format!("{header}.{claims}").as_bytes());
                put(&mut out, 1, header.as_bytes());
                put(&mut out, 2, URL_SAFE_NO_PAD.encode(signature.expect("a signature")).as_bytes());
            }
            _ => return Err((12, "unknown")),
        }
        Ok(out)
    }
}

async fn request(server: &TestServer) -> Answer {
    server.post(TOKENS, &json!({"spec": {"expirationSeconds": 100_000}})).await
}

async fn token(server: &TestServer) -> String {
    let answer = request(server).await;
    let warning = "299 - \"requested expiration of 100000 seconds shortened to 7200 seconds\"";
    assert_eq!(answer.headers("warning"), [warning]);
    answer.expect(201)["status"]["token"].as_str().expect("a token").to_owned()
}

/// The id of the key that has signed a token.
fn key_of(token: &str) -> Value {
    let header = token.split('.').next().expect("a header");
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).expect("base64")).expect("JSON");
    header["kid"].clone()
}

async fn status_of(server: &TestServer, token: &str) -> u16 {
    server.token(token).get("/version").await.status
}

async fn shown_keys(server: &TestServer) -> Vec<Value> {
    let answer = server.get("/openid/v1/jwks").await;
    let age = answer.header("cache-control").expect("an age").strip_prefix("public, max-age=");
    let age: u64 = age.expect("an age").parse().expect("a number");
    assert!(age <= 600, "{age}");
    let keys = answer.json();
    keys["keys"].as_array().expect("keys").iter().map(|key| key["kid"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_signed_by_a_service_that_has_the_keys() {
    let mut setup = Setup::new(Database::memory());
    let socket = setup.file("signer.sock");
    let signer = Signer::start(&socket);
    let settings = &mut setup.authentication.service_accounts;
    settings.issuers = vec![ISSUER.to_owned()];
    settings.signing_endpoint = Some(socket.to_str().expect("a path").to_owned());
    let server = setup.start().await;
    let account = json!({"metadata": {"name": "robot"}});
    server.post("/api/v1/namespaces/t/serviceaccounts", &account).await.expect(201);

    let first = token(&server).await;
    assert_eq!((key_of(&first), status_of(&server, &first).await), (json!("first"), 200));
    assert_eq!((shown_keys(&server).await, signer.fetches()), (vec![json!("first")], 1));

    // Another key: the server asks when it meets it, once.
    signer.add("second", false);
    let second = token(&server).await;
    assert_eq!((key_of(&second), signer.fetches()), (json!("second"), 2));
    assert_eq!((status_of(&server, &second).await, status_of(&server, &first).await), (200, 200));
    assert_eq!((shown_keys(&server).await.len(), signer.fetches()), (2, 2));

    // A key that signs no more verifies as long as the service names it.
    signer.remove("first");
    signer.add("third", false);
    let third = token(&server).await;
    for (token, status) in [(&first, 401), (&second, 200), (&third, 200)] {
        assert_eq!(status_of(&server, token).await, status);
    }

    // What the service must not answer.
    for (header, why) in [
        (json!({"alg": "ES256", "kid": "third"}), "bad type"),
        (json!({"alg": "ES256", "typ": "JWT"}), "key id missing"),
        (json!({"alg": "none", "kid": "third", "typ": "JWT"}), "bad signing algorithm \"none\""),
        (json!({"alg": "ES256", "kid": "third", "typ": "JWT", "jku": "x"}), "while parsing header JSON"),
    ] {
        signer.sign_with_header(Some(header));
        let text = request(&server).await.expect(500)["message"].to_string();
        assert!(text.contains("failed to generate token: while validating header: "), "{text}");
        assert!(serde_json::from_str::<String>(&text).expect("text").contains(why), "{text}");
    }
    signer.sign_with_header(None);
    signer.add("hidden", true);
    let text = request(&server).await.expect(500)["message"].to_string();
    assert!(text.contains("(kid: hidden) is excluded from OIDC discovery docs"), "{text}");
    assert_eq!(shown_keys(&server).await, [json!("second"), json!("third")]);
    signer.remove("hidden");

    // Without the service there are no new tokens, and those that are known stay good.
    signer.set(Mood::Fails);
    let text = request(&server).await.expect(500)["message"].to_string();
    let why = "failed to generate token: while signing jwt: rpc error: code = Unavailable desc = the vault is sealed";
    assert!(text.contains(why), "{text}");
    assert_eq!(status_of(&server, &third).await, 200);
    let metrics = server.get("/metrics").await.text();
    for line in [
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 3",
        "apiserver_externaljwt_sign_request_total{code=\"unknown-non-grpc\"} 5",
        "apiserver_externaljwt_sign_request_total{code=\"Unavailable\"} 1",
        "apiserver_externaljwt_fetch_keys_data_timestamp 1700000000",
        "apiserver_externaljwt_request_duration_seconds_count{method=\"/v1.ExternalJWTSigner/Sign\",code=\"OK\"} 8",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_signs_for_too_short_a_time_is_not_used() {
    let mut setup = Setup::new(Database::memory());
    let socket = setup.file("signer.sock");
    let signer = Signer::start(&socket);
    setup.authentication.service_accounts.signing_endpoint =
        Some(socket.to_str().expect("a path").to_owned());
    for (longest, asked, why) in [
        (
            599,
            None,
            "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)",
        ),
        (
            7200,
            Some(7201),
            "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
             service-account-signing-endpoint: 2h0m1s > 2h0m0s",
        ),
    ] {
        signer.state.longest.store(longest, Ordering::SeqCst);
        setup.authentication.service_accounts.max_token_expiration =
            asked.map(std::time::Duration::from_secs);
        let error = setup.builder().start().await.err().expect("no server");
        assert!(error.one_line().contains(why), "{}", error.one_line());
    }
}
