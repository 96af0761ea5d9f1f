//! Certificates and tokens that change, or end, while the server runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;
use rowplane::auth::pki::{Overrides, Pki, ServingNames, Sources};
use rowplane::wall_clock::WallClock;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
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
    root.get(CONFIGMAPS).await.ok();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_client_cas_of_ones_own_only_these_are_trusted() {
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
