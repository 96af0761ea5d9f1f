//! `sslmode` against clusters with and without TLS, and passwords that must stay secret.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rowplane::storage::postgres::{Address, Postgres};
use rowplane::storage::{OpenError, Reads as _, Upkeep as _};
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::cluster::Cluster;
use crate::support::process::Installation;

const PASSWORD: &str = "correct-horse";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key for a host.
fn server_certificate(authority: &Authority, name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

fn client_certificate(authority: &Authority, user: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// A cluster whose certificate names `db.test`. On the network it accepts only TLS: user `scram` with a password, user
/// `certain` with a certificate.
async fn tls_cluster(certificate: &str, key: &str, client_roots: &str) -> Cluster {
    let hba = "local all all trust\n\
        hostssl all scram 127.0.0.1/32 scram-sha-256\n\
        hostssl all certain 127.0.0.1/32 cert\n";
    let conf = "ssl = on\nssl_cert_file = 'tls.crt'\nssl_key_file = 'tls.key'\nssl_ca_file = 'clients.crt'\n";
    let files = [
        ("tls.crt", certificate),
        ("tls.key", key),
        ("clients.crt", client_roots),
        ("pg_hba.conf", hba),
        ("postgresql.conf", conf),
    ];
    let cluster = Cluster::listening(&files).await;
    let roles = format!(
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD '{PASSWORD}'; \
         CREATE ROLE certain LOGIN; CREATE SCHEMA scram AUTHORIZATION scram; \
         CREATE SCHEMA certain AUTHORIZATION certain"
    );
    cluster.execute(&roles).await;
    cluster
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}

/// A URL for the cluster under this name, for user `scram` with its password.
fn url(cluster: &Cluster, name: &str, query: &str) -> String {
    let port = cluster.port();
    format!("postgres://scram:{PASSWORD}@{name}:{port}/postgres?hostaddr=127.0.0.1&{query}")
}

/// Opens the store, uses it, and returns whether the database saw TLS.
async fn over_tls(cluster: &Cluster, url: &str) -> bool {
    let store = Postgres::open(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    store.clock().await.expect("a clock");
    let connections = async |ssl| {
        let query = "SELECT COUNT(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) \
             WHERE application_name = 'rowplane' AND ";
        cluster.number(&format!("{query}{ssl}")).await
    };
    let (secured, plain) = (connections("ssl").await, connections("NOT ssl").await);
    assert!((secured > 0) != (plain > 0), "{secured} connections over TLS, {plain} in plain text");
    store.close().await;
    while cluster.number("SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'rowplane'").await
        > 0
    {}
    secured > 0
}

/// The error message for the operator, which never contains the password.
async fn refused(address: impl Into<Address>) -> String {
    let error = Postgres::open(address).await.err().expect("it must not open");
    let text = error.to_string();
    assert!(!text.contains(PASSWORD) && !text.contains('\n'), "{text}");
    assert!(matches!(error, OpenError::Unreachable { .. } | OpenError::Url { .. }), "{error:?}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sslmode_is_what_libpq_means_by_it() {
    let (ours, others) = (authority("one"), authority("another"));
    let (certificate, key) = server_certificate(&ours, "db.test");
    let cluster = tls_cluster(&certificate, &key, &ours.pem()).await;
    let files = Files::new();
    let (right, wrong) = (files.write("right.crt", &ours.pem()), files.write("wrong.crt", &others.pem()));
    let root = |mode: &str, root: &Path| format!("sslmode={mode}&sslrootcert={}", root.display());

    for (name, query) in [
        ("db.test", root("verify-full", &right)),
        ("other.test", root("verify-ca", &right)),
        ("other.test", root("require", &right)),
        ("other.test", "sslmode=require".to_owned()),
        // The server accepts only TLS, so plain text would fail.
        ("other.test", String::new()),
        ("other.test", "sslmode=prefer".to_owned()),
    ] {
        assert!(over_tls(&cluster, &url(&cluster, name, &query)).await, "{name} {query}");
    }
    for (name, query, why) in [
        ("other.test", root("verify-full", &right), "certificate is valid for db.test, not "),
        ("db.test", root("verify-full", &wrong), "certificate signed by unknown authority"),
        ("db.test", root("verify-ca", &wrong), "certificate signed by unknown authority"),
        ("db.test", root("require", &wrong), "certificate signed by unknown authority"),
        ("db.test", "sslmode=disable".to_owned(), "no pg_hba.conf entry"),
    ] {
        let text = refused(url(&cluster, name, &query)).await;
        assert!(text.contains(why), "{name} {query}: {text}");
    }
    // Each host of a list has to have its own name.
    let list = url(&cluster, "other.test", &root("verify-full", &right))
        .replace("@other.test", "@elsewhere.test,db.test")
        .replace("hostaddr=127.0.0.1", "hostaddr=127.0.0.1,127.0.0.1")
        .replace(&format!(":{}/", cluster.port()), "/")
        + &format!("&port={}", cluster.port());
    assert!(over_tls(&cluster, &list).await);
    let text = refused(list.replace("db.test", "db2.test")).await;
    assert!(text.matches("certificate is valid for db.test, not ").count() == 2, "{text}");

    let bad = url(&cluster, "db.test", &root("verify-full", &right)).replace(PASSWORD, "wrong-horse");
    let text = refused(bad).await;
    assert!(text.contains("password authentication failed") && !text.contains("wrong-horse"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_can_stand_for_a_password() {
    let ours = authority("one");
    let (certificate, key) = server_certificate(&ours, "db.test");
    let cluster = tls_cluster(&certificate, &key, &ours.pem()).await;
    let files = Files::new();
    let root = files.write("ca.crt", &ours.pem());
    let (certificate, key) = client_certificate(&ours, "certain");
    let (certificate, key) = (files.write("me.crt", &certificate), files.write("me.key", &key));
    let url = format!(
        "postgres://certain@db.test:{}/postgres?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={}",
        cluster.port(),
        root.display()
    );
    let text = refused(&url).await;
    assert!(text.contains("certificate"), "{text}");
    assert!(
        over_tls(&cluster, &format!("{url}&sslcert={}&sslkey={}", certificate.display(), key.display()))
            .await
    );
}

/// Made like `openssl req -x509` does: an authority that is also the server's certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_self_signed_certificate_is_its_own_root() {
    let mut params = CertificateParams::new(["db.test".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let cluster = tls_cluster(&certificate, &key.serialize_pem(), &certificate).await;
    let files = Files::new();
    let root = files.write("server.crt", &certificate);
    let query = |mode: &str| format!("sslmode={mode}&sslrootcert={}", root.display());
    assert!(over_tls(&cluster, &url(&cluster, "db.test", &query("verify-full"))).await);
    let text = refused(url(&cluster, "other.test", &query("verify-full"))).await;
    assert!(text.contains("certificate is valid for db.test, not "), "{text}");
}

/// 0.0.0.0 leads to this host, but a program cannot know that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_no_server_for_other_hosts() {
    let cluster = Cluster::listening(&[]).await;
    let url =
        |host: &str, query: &str| format!("postgres://rowplane@{host}:{}/postgres{query}", cluster.port());
    for (host, query) in [
        ("127.0.0.1", "?sslmode=require"),
        ("127.0.0.1", "?sslmode=verify-full&sslrootcert=system"),
        ("0.0.0.0", ""),
        ("0.0.0.0", "?sslmode=allow"),
        ("0.0.0.0", "?sslmode=prefer"),
        ("0.0.0.0", "?sslmode=require"),
    ] {
        let text = refused(url(host, query)).await;
        assert!(text.contains("does not speak TLS, and sslmode"), "{host}{query}: {text}");
    }
    for (host, query) in [
        ("127.0.0.1", ""),
        ("127.0.0.1", "?sslmode=prefer"),
        ("127.0.0.1", "?sslmode=allow"),
        ("0.0.0.0", "?sslmode=disable"),
    ] {
        assert!(!over_tls(&cluster, &url(host, query)).await, "{host}{query}");
    }
}

/// The system's authorities count only if the URL asks for them; `SSL_CERT_FILE` replaces the system's store here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_system_s_authorities_count_only_where_they_are_asked_for() {
    let (public, own) = (authority("one"), authority("another"));
    let (certificate, key) = server_certificate(&public, "localhost");
    let cluster = tls_cluster(&certificate, &key, &own.pem()).await;
    let files = Files::new();
    let (system, root) = (files.write("system.crt", &public.pem()), files.write("own.crt", &own.pem()));
    // Creates the tables whose status is shown.
    let through_socket = format!("{}?user=scram&options=-csearch_path%3Dscram", cluster.url());
    Postgres::open(&through_socket).await.expect("open").close().await;
    let status = async |query: String| {
        let url = format!(
            "postgres://scram:{PASSWORD}@localhost:{}/postgres?options=-csearch_path%3Dscram&{query}",
            cluster.port()
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        command
            .args(["status", "--datastore", &url])
            .env("SSL_CERT_FILE", &system)
            .env_remove("SSL_CERT_DIR");
        let output = command.output().await.expect("run rowplane");
        (output.status.success(), String::from_utf8(output.stderr).expect("text"))
    };
    let (done, text) = status("sslrootcert=system".to_owned()).await;
    assert!(done, "{text}");
    for mode in ["verify-full", "verify-ca", "require"] {
        let (done, text) = status(format!("sslmode={mode}&sslrootcert={}", root.display())).await;
        assert!(!done && text.contains("certificate signed by unknown authority"), "{mode}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_sees_a_password_from_a_file() {
    let ours = authority("one");
    let (certificate, key) = server_certificate(&ours, "localhost");
    let cluster = tls_cluster(&certificate, &key, &ours.pem()).await;
    let files = Files::new();
    let (root, secret) =
        (files.write("ca.crt", &ours.pem()), files.write("secret", &format!("{PASSWORD}\n")));
    let place = format!(
        "localhost:{}/postgres?sslmode=verify-full&sslrootcert={}&options=-csearch_path%3Dscram",
        cluster.port(),
        root.display()
    );
    let shown = async |installation: &Installation| {
        let process = installation.start().await;
        let arguments =
            std::fs::read_to_string(format!("/proc/{}/cmdline", process.id())).expect("arguments");
        process.terminate().await;
        assert!(process.end().await.success());
        let log = std::fs::read_to_string(installation.dir().join("server.log")).expect("a log");
        (arguments, log)
    };
    let with_file = Installation::sqlite()
        .with(&format!("--datastore=postgres://scram@{place}"))
        .with(&format!("--datastore-password-file={}", secret.display()));
    let (arguments, log) = shown(&with_file).await;
    assert!(!arguments.contains(PASSWORD) && !log.contains(PASSWORD), "{arguments} {log}");
    assert!(log.contains("ready") && !log.contains("can be seen"), "{log}");

    let in_url = Installation::sqlite().with(&format!("--datastore=postgres://scram:{PASSWORD}@{place}"));
    let (_, log) = shown(&in_url).await;
    assert!(
        log.contains("the password in the datastore's URL can be seen") && !log.contains(PASSWORD),
        "{log}"
    );
}
