//! `rowplane kube-apiserver`: what it makes where flags name no files.

use std::net::TcpListener;
use std::process::Command;

use tempfile::TempDir;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use crate::etcd::Running;

/// 65 and 66 of `docs/spec/cluster.md`.
#[test]
fn cluster_65_66_a_certificate_is_made_and_kept_and_nobody_is_anonymous() {
    let dir = TempDir::new().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let flags = [
        "kube-apiserver".to_owned(),
        format!("--cert-dir={}", dir.path().display()),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=192.0.2.7".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
    ];
    let certificate = || std::fs::read(dir.path().join("apiserver.crt")).unwrap();
    let mut server = Running::start(&flags, "AnonymousAuth is not allowed with the AlwaysAllow authorizer.");
    server.wait_for(" ready ");
    let mut curl = Command::new("curl");
    curl.args(["-sk", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}"]);
    let code = curl.arg(format!("https://127.0.0.1:{port}/healthz")).output().unwrap().stdout;
    assert_eq!(code, b"401");
    drop(server);
    let first = certificate();
    let (_, pem) = parse_x509_pem(&first).unwrap();
    let parsed = pem.parse_x509().unwrap();
    let names = parsed.subject_alternative_name().unwrap().unwrap();
    let has = |wanted: GeneralName<'_>| names.value.general_names.contains(&wanted);
    for address in [[192, 0, 2, 7], [127, 0, 0, 1], [10, 96, 0, 1]] {
        assert!(has(GeneralName::IPAddress(&address)), "{address:?}: {names:?}");
    }
    for name in ["kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
        assert!(has(GeneralName::DNSName(name)), "{name}: {names:?}");
    }
    let mut server = Running::start(&flags, " ready ");
    assert_eq!(certificate(), first);
    assert_eq!(server.signal("TERM"), Some(0));
}
