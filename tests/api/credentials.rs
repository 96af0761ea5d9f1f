//! Certificates and tokens that change, or end, while the server runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;
use rowplane::auth::authn::FrontProxy;
use rowplane::auth::pki::{Overrides, Pki, ServingNames, Sources};
use rowplane::wall_clock::WallClock;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Client, Protocol, connect};
use crate::support::database::Database;
use crate::support::server::{ALICE, CONFIGMAPS, ROOT, Setup};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A CA of somebody else's, a serving certificate and an admin.
fn elsewhere() -> (TempDir, Pki) {
    let dir = tempfile::tempdir().expect("a directory");
    let names = ServingNames { bind_address: [127, 0, 0, 1].into(), hostname: None, extra: Vec::new() };
    let sources = Sources { dir: dir.path().to_owned(), names, overrides: Overrides::default() };
    let pki = sources.ensure(SystemTime::now()).expect("certificates");
    (dir, pki)
}

#[track_caller]
fn copy(from: &Path, to: &Path) {
    std::fs::copy(from, to).expect("copy");
}

/// A setup whose clock goes ahead by whole days.
fn with_days(setup: &mut Setup) -> Arc<AtomicU64> {
    let days = Arc::new(AtomicU64::new(0));
    let ahead = days.clone();
    setup.clock = WallClock::new(move || SystemTime::now() + DAY * ahead.load(Ordering::SeqCst) as u32);
    days
}

/// Shows a certificate of somebody else's CA from now on.
fn show(setup: &mut Setup, dir: &TempDir) {
    let files = ["serving.crt", "serving.key"].map(|name| setup.file(name));
    for (name, file) in ["apiserver.crt", "apiserver.key"].iter().zip(&files) {
        copy(&dir.path().join(name), file);
    }
    let [certificate, key] = files;
    setup.certificates.serving = Some((certificate, key));
}

/// The admin of now, who knows these CAs.
fn admin(setup: &Setup, authorities: &[&TempDir]) -> Kubeconfig {
    let authorities = authorities.iter().map(|dir| std::fs::read(dir.path().join("ca.crt")).expect("a CA"));
    let authorities = authorities.collect::<Vec<_>>().concat();
    let mut kubeconfig = setup.kubeconfig();
    let cluster = kubeconfig.clusters[0].cluster.as_mut().expect("a cluster");
    cluster.certificate_authority_data = Some(STANDARD.encode(authorities));
    kubeconfig
}

/// The server's clock goes ahead, that of its clients does not; so it shows them somebody else's certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_has_ended_is_refused_and_the_next_one_is_there_before() {
    const NAMESPACES: &str = "/api/v1/namespaces";
    let (foreign, _) = elsewhere();
    let mut setup = Setup::new(Database::sqlite());
    let days = with_days(&mut setup);
    show(&mut setup, &foreign);
    let server = setup.start_without_admin().await;
    let client = || Client::of_certificate(&admin(&setup, &[&foreign]), Protocol::Any);
    let first = client();
    first.get(NAMESPACES).await.ok();
    days.store(300, Ordering::SeqCst);
    first.get(NAMESPACES).await.ok();
    server.reload_credentials().await;
    let renewed = client();
    renewed.get(NAMESPACES).await.ok();
    days.store(366, Ordering::SeqCst);
    first.get(NAMESPACES).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    first.delete(format!("{NAMESPACES}/a")).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    renewed.get(NAMESPACES).await.ok();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_taken_out_of_the_file_is_refused() {
    let setup = Setup::new(Database::sqlite());
    let server = setup.start().await;
    let root = server.token("root-token");
    root.get(CONFIGMAPS).await.ok();
    std::fs::write(setup.file("tokens.csv"), format!("{ALICE}new-root,root,u-2,\"system:masters\"\n"))
        .expect("write");
    server.reload_credentials().await;
    root.get(CONFIGMAPS).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    server.token("new-root").get(CONFIGMAPS).await.ok();
    // What cannot be read changes nothing.
    std::fs::write(setup.file("tokens.csv"), format!("{ROOT}half a li")).expect("write");
    server.reload_credentials().await;
    root.get(CONFIGMAPS).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    server.token("new-root").get(CONFIGMAPS).await.ok();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_serving_certificate_is_shown_once_its_key_is_there() {
    let ((one_dir, one), (other_dir, other)) = (elsewhere(), elsewhere());
    let mut setup = Setup::new(Database::sqlite());
    show(&mut setup, &one_dir);
    let server = setup.start_without_admin().await;
    let shown = async || {
        let stream = connect(&admin(&setup, &[&one_dir, &other_dir]), "h2").await.expect("a handshake");
        let chain = stream.get_ref().1.peer_certificates().expect("shown");
        chain.iter().map(|der| der.clone().into_owned()).collect::<Vec<CertificateDer<'static>>>()
    };
    assert_eq!(shown().await, one.serving.chain);
    copy(&other_dir.path().join("apiserver.crt"), &setup.file("serving.crt"));
    server.reload_credentials().await;
    assert_eq!(shown().await, one.serving.chain, "the key is still that of the other");
    copy(&other_dir.path().join("apiserver.key"), &setup.file("serving.key"));
    server.reload_credentials().await;
    assert_eq!(shown().await, other.serving.chain);
    server.stop().await;
}

/// What other API servers read of this one's CAs (10).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_10_others_learn_whom_to_trust() {
    let (foreign, _) = elsewhere();
    let mut setup = Setup::new(Database::memory());
    setup.cluster_authentication = true;
    setup.certificates.front_proxy_ca_file = Some(foreign.path().join("ca.crt"));
    setup.authentication.front_proxy.username_headers = vec!["x-remote-user".parse().expect("a name")];
    setup.authentication.front_proxy.allowed_names = vec!["front-proxy".to_owned()];
    let server = setup.start().await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let data = server.get(path).await.ok()["data"].clone();
    let own = std::fs::read_to_string(setup.file("pki/ca.crt")).expect("a CA");
    let proxies = std::fs::read_to_string(foreign.path().join("ca.crt")).expect("a CA");
    let base64 = |pem: &str| pem.lines().filter(|line| !line.starts_with("---")).collect::<String>();
    let text = |key: &str| base64(data[key].as_str().expect("a text"));
    assert_eq!(text("client-ca-file"), base64(&own));
    assert_eq!(text("requestheader-client-ca-file"), base64(&proxies));
    assert_eq!(data["requestheader-username-headers"], r#"["X-Remote-User"]"#);
    assert_eq!(data["requestheader-allowed-names"], r#"["front-proxy"]"#);
    assert_eq!(data["requestheader-group-headers"], "[]");
    let maps = "/api/v1/namespaces/kube-system/configmaps?watch=1";
    let mut watch = server.watch(maps).await;
    server.delete(path).await.ok();
    while watch.next().await.expect("an event")["type"] != "DELETED" {}
    let back = watch.expect_named("ADDED", "extension-apiserver-authentication").await;
    assert_eq!(back["data"], data);
    // Who is trusted later stands beside who was.
    let (another, _) = elsewhere();
    copy(&another.path().join("ca.crt"), &foreign.path().join("ca.crt"));
    server.reload_credentials().await;
    let changed = watch.expect_named("MODIFIED", "extension-apiserver-authentication").await;
    let both = changed["data"]["requestheader-client-ca-file"].as_str().expect("a text");
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 2, "{both}");
    server.stop().await;
}

/// Bootstrap tokens (11): every condition has to hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_11_bootstrap_tokens() {
    let mut setup = Setup::new(Database::memory());
    setup.authentication.bootstrap_tokens = true;
    let server = setup.start().await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let right = json!({
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a",
            "expiration": "2999-01-01T00:00:00Z",
        },
    });
    let known = async || server.token("abcdef.0123456789abcdef").get("/version").await.status;
    assert_eq!(known().await, 401);
    for (field, wrong) in [
        ("token-id", "abcdeg"),
        ("token-secret", "0123456789abcdee"),
        ("usage-bootstrap-authentication", "True"),
        ("auth-extra-groups", "system:masters"),
        ("expiration", "2020-01-01T00:00:00Z"),
        ("expiration", "soon"),
    ] {
        let mut secret = right.clone();
        secret["stringData"][field] = wrong.into();
        server.post(secrets, &secret).await.expect(201);
        assert_eq!(known().await, 401, "{field}");
        server.delete(format!("{secrets}/bootstrap-token-abcdef")).await.ok();
    }
    let mut opaque = right.clone();
    opaque["type"] = "Opaque".into();
    server.post(secrets, &opaque).await.expect(201);
    assert_eq!(known().await, 401);
    server.delete(format!("{secrets}/bootstrap-token-abcdef")).await.ok();
    server.post("/api/v1/namespaces/t/secrets", &right).await.expect(201);
    assert_eq!(known().await, 401, "of another namespace");
    server.post(secrets, &right).await.expect(201);
    assert_eq!(known().await, 200);
    let question = json!({"spec": {"token": "abcdef.0123456789abcdef"}});
    let review = server.post("/apis/authentication.k8s.io/v1/tokenreviews", &question).await.expect(201);
    let groups =
        ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b", "system:authenticated"];
    let user = json!({"username": "system:bootstrap:abcdef", "groups": groups});
    assert_eq!(review["status"]["user"], user);
    server.stop().await;
}

/// Certificates of another CA (4), with and without a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_4_a_foreign_certificate_is_refused_unless_a_token_is_good() {
    let (foreign, pki) = elsewhere();
    let setup = Setup::new(Database::memory());
    let server = setup.start().await;
    let stranger = with_certificate(&setup, &pki);
    for path in ["/version", CONFIGMAPS] {
        stranger.get(path).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    }
    let root = stranger.get(CONFIGMAPS).header("authorization", "Bearer root-token").await;
    assert_eq!(root.status, 200);
    drop(foreign);
    server.stop().await;
}

/// A client that shows the admin's certificate of another CA.
fn with_certificate(setup: &Setup, pki: &Pki) -> Client {
    let admin = pki.admin.as_ref().expect("an admin");
    showing(setup, admin.certificate.as_ref(), admin.key.as_ref())
}

/// A client that shows this certificate, in PEM.
fn showing(setup: &Setup, certificate: &[u8], key: &[u8]) -> Client {
    let mut kubeconfig = setup.kubeconfig();
    let user = kubeconfig.auth_infos[0].auth_info.as_mut().expect("a user");
    user.client_certificate_data = Some(STANDARD.encode(certificate));
    user.client_key_data = Some(STANDARD.encode(key).into());
    Client::of_certificate(&kubeconfig, Protocol::Any)
}

/// What `openssl x509 -req` makes of a request, if it is told of no extensions: X.509's first version, which Go reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_the_first_version_name_users() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/first-version");
    let read = |name: &str| std::fs::read(fixtures.join(name)).expect("a fixture");
    let mut setup = Setup::new(Database::memory());
    let file = setup.file("clients.crt");
    setup.certificates.client_ca_file = Some(file.clone());
    copy(&fixtures.join("ca.crt"), &file);
    let server = setup.start_without_admin().await;
    let own = std::fs::read(setup.file("pki/ca.crt")).expect("a CA");
    std::fs::write(&file, [read("ca.crt"), own.clone()].concat()).expect("write");
    server.reload_credentials().await;
    let jane = showing(&setup, &read("client.crt"), &read("client.key"));
    let who = || jane.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({}));
    let user = who().await.expect(201)["status"]["userInfo"].clone();
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], json!(["team", "system:authenticated"]));
    // Of a CA that is not trusted, it is as good as any other of such a CA.
    std::fs::write(&file, own).expect("write");
    server.reload_credentials().await;
    who().await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    server.stop().await;
}

/// A proxy says by headers whose request it passes on (8).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_8_a_front_proxy_speaks_for_others() {
    let names = |list: &[&str]| list.iter().map(|name| name.parse().expect("a name")).collect();
    let (dir, pki) = elsewhere();
    let mut setup = Setup::new(Database::memory());
    setup.certificates.front_proxy_ca_file = Some(dir.path().join("ca.crt"));
    setup.authentication.front_proxy = FrontProxy {
        username_headers: names(&["X-Remote-User"]),
        uid_headers: names(&["X-Remote-Uid"]),
        group_headers: names(&["X-Remote-Group"]),
        extra_prefixes: vec!["x-remote-extra-".to_owned()],
        allowed_names: vec!["kubernetes-admin".to_owned()],
    };
    let server = setup.start().await;
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let ask = |client: &Client| {
        let request =
            client.post(who, &json!({})).header("x-remote-user", "jane").header("x-remote-uid", "7");
        request.header("x-remote-group", "system:masters").header("x-remote-extra-scopes%2fx", "a")
    };
    let jane = ask(&with_certificate(&setup, &pki)).await.expect(201)["status"]["userInfo"].clone();
    let groups = ["system:masters", "system:authenticated"];
    let want = json!({"username": "jane", "uid": "7", "groups": groups, "extra": {"scopes/x": ["a"]}});
    assert_eq!(jane, want);
    // A proxy that speaks for nobody is nobody here, since its CA is none of users.
    with_certificate(&setup, &pki).get("/version").await.fails(
        401,
        "Unauthorized",
        "Unauthorized",
        Value::Null,
    );
    // Users speak for themselves.
    let admin = ask(&server).await.expect(201)["status"]["userInfo"]["username"].clone();
    assert_eq!(admin, "kubernetes-admin");
    server.stop().await;
    setup.authentication.front_proxy.allowed_names = vec!["front-proxy".to_owned()];
    let server = setup.start().await;
    ask(&with_certificate(&setup, &pki)).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_7_with_client_cas_of_ones_own_only_these_are_trusted() {
    let (foreign, _) = elsewhere();
    let mut setup = Setup::new(Database::sqlite());
    let file = setup.file("clients.crt");
    setup.certificates.client_ca_file = Some(file.clone());
    copy(&foreign.path().join("ca.crt"), &file);
    let server = setup.start_without_admin().await;
    assert!(!setup.file("admin.kubeconfig").exists());
    // Whoever wants our CA among them adds it.
    let both = [foreign.path().join("ca.crt"), setup.file("pki/ca.crt")]
        .map(|path| std::fs::read(path).expect("a CA"));
    std::fs::write(&file, both.concat()).expect("write");
    server.reload_credentials().await;
    let admin = Client::of_certificate(&setup.kubeconfig(), Protocol::Any);
    admin.get("/api/v1/namespaces").await.ok();
    // And takes it away again, also from connections that stand.
    copy(&foreign.path().join("ca.crt"), &file);
    server.reload_credentials().await;
    admin.get("/api/v1/namespaces").await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    assert!(!setup.file("admin.kubeconfig").exists());
    server.stop().await;
}
