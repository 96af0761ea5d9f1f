//! `rowplane healthcheck`: whether a server on this machine is ready.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{Server, rowplane};

fn check(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let Output { status, stdout, stderr } = command.arg("healthcheck").args(arguments).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn of_data_dir(dir: &Path) -> (Option<i32>, String) {
    check(&["--data-dir", dir.to_str().unwrap()])
}

#[test]
fn a_server_is_found_by_its_data_directory_or_its_url() {
    let dir = TempDir::new().unwrap();
    let (code, told) = of_data_dir(dir.path());
    assert!(code == Some(1) && told.contains("admin.kubeconfig is not there"), "{told}");
    // Only those who show a certificate may ask.
    let mut server = Server::of(&mut rowplane(dir.path(), &["--secure-port=0", "--anonymous-auth=false"]));
    let ready = format!("{}/readyz", server.url);
    assert_eq!(of_data_dir(dir.path()), (Some(0), format!("{ready}: ok\n")));
    let (code, told) = check(&["--url", &server.url]);
    assert!(code == Some(1) && told.contains(&format!("{ready} is not ready: 401 Unauthorized")), "{told}");
    server.signal("TERM");
    let (code, told) = of_data_dir(dir.path());
    assert!(code == Some(1) && told.contains("connection refused"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");

    let server = Server::start(dir.path());
    assert_eq!(check(&["--url", &server.url]), (Some(0), format!("{}/readyz: ok\n", server.url)));
    let alive = format!("{}/livez", server.url);
    assert_eq!(check(&["--url", &alive]), (Some(0), format!("{alive}: ok\n")));
}

#[test]
fn what_is_no_server_is_told_in_one_line() {
    for url in ["nothing", "ftp://h"] {
        let (code, told) = check(&["--url", url]);
        assert!(code == Some(2) && told.contains("is no URL of https or http"), "{told}");
    }
    // Nobody answers on a port whose connections nobody accepts.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (code, told) = check(&["--url", &url, "--timeout=50ms"]);
    assert_eq!(
        (code, told),
        (Some(1), format!("rowplane: {url}/readyz is not ready: no answer within 50ms\n"))
    );
}
