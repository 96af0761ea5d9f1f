//! `rowplane console`: a page on this machine, with a kubeconfig's credentials.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::Server;

/// A proxy that has printed its URL. Killed when it is dropped.
struct Console {
    child: Child,
    /// The host with its port, and the secret path.
    authority: String,
    secret: String,
}

impl Console {
    fn start(kubeconfig: &std::path::Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        command.args(["console", "--no-open", "--kubeconfig"]).arg(kubeconfig).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (authority, path) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        let secret = format!("/{}", path.strip_suffix("/console/").unwrap());
        Self { child, authority: authority.to_owned(), secret }
    }

    /// The answer to a request, as it is sent.
    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        let host = &self.authority;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn time_and_sql_67_the_page_reads_with_the_credentials_of_a_kubeconfig() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path());
    let mut console = Console::start(&dir.path().join("admin.kubeconfig"));
    let secret = console.secret.clone();
    assert_eq!(secret.len(), 33, "{secret}");
    let page = console.ask("GET", &format!("{secret}/console/"));
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("<title>rowplane</title>"), "{page}");
    let namespaces = format!("{secret}/api/v1/namespaces?limit=1");
    let list = console.ask("GET", &namespaces);
    assert!(list.starts_with("HTTP/1.1 200 OK\r\n") && list.contains("\"NamespaceList\""), "{list}");
    assert!(
        list.contains("content-security-policy: default-src 'none'; frame-ancestors 'none'; sandbox\r\n"),
        "{list}"
    );
    for (method, path, status) in [
        ("GET", "/console/", 403),
        ("GET", "/api/v1/namespaces", 403),
        ("DELETE", namespaces.as_str(), 405),
        ("PUT", namespaces.as_str(), 405),
        ("POST", namespaces.as_str(), 405),
    ] {
        let answer = console.ask(method, path);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
    }
    drop(server);
    let answer = console.ask("GET", &namespaces);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let id = console.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    assert!(console.child.wait().unwrap().success());
}

#[test]
fn a_kubeconfig_is_needed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let ended = command.args(["console", "--no-open", "--kubeconfig", "/nowhere/config"]).output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(2) && told.contains("/nowhere/config"), "{told}");
}
