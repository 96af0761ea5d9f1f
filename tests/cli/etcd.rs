//! `rowplane etcd`, and the place that `rowplane kube-apiserver` finds by it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use tempfile::TempDir;

use crate::pki::Authority;

/// A program that is killed when it is dropped.
pub struct Running {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Running {
    /// Starts `rowplane` with these arguments, and waits for a line of its log.
    pub fn start(arguments: &[String], line: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        let mut child =
            command.args(arguments).env_remove("ROWPLANE_DATASTORE").stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut this = Self { child, log };
        this.wait_for(line);
        this
    }

    pub fn signal(&mut self, name: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// The line with this text.
    pub fn wait_for(&mut self, text: &str) -> String {
        let mut lines = String::new();
        loop {
            let mut line = String::new();
            assert!(self.log.read_line(&mut line).unwrap() > 0, "no {text:?} in: {lines}");
            if line.contains(text) {
                return line;
            }
            lines.push_str(&line);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The exit code, and what was printed to standard error.
fn ended(arguments: &[String]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let Output { status, stderr, .. } =
        command.args(arguments).env_remove("ROWPLANE_DATASTORE").output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "--noproxy", "*"]).args(arguments).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Writes a CA, and the certificates of an etcd and of its client.
fn write_certificates(dir: &Path) {
    let authority = Authority::write(dir, "ca");
    authority.server("server");
    authority.client("client");
}

/// The flags of kubeadm v1.37.2's static Pod.
fn of_kubeadm(pki: &Path, data: &Path, clients: u16, metrics: u16) -> Vec<String> {
    let (pki, data, peers) = (pki.display(), data.display(), free_port());
    format!(
        "etcd --advertise-client-urls=https://127.0.0.1:{clients} --cert-file={pki}/server.crt --client-cert-auth=true \
         --data-dir={data} --feature-gates=InitialCorruptCheck=true \
         --initial-advertise-peer-urls=https://127.0.0.1:{peers} --initial-cluster=n=https://127.0.0.1:{peers} \
         --key-file={pki}/server.key --listen-client-urls=https://127.0.0.1:{clients},https://127.0.0.1:{clients} \
         --listen-metrics-urls=http://127.0.0.1:{metrics} --listen-peer-urls=https://127.0.0.1:{peers} --name=n \
         --peer-cert-file={pki}/peer.crt --peer-client-cert-auth=true --peer-key-file={pki}/peer.key \
         --peer-trusted-ca-file={pki}/ca.crt --snapshot-count=10000 --trusted-ca-file={pki}/ca.crt \
         --watch-progress-notify-interval=5s"
    )
    .split_whitespace()
    .map(str::to_owned)
    .collect()
}

/// The flags of a kube-apiserver beside an etcd at these URLs, with a directory of its own.
fn beside(etcd: &str, certs: &Path, port: u16) -> Vec<String> {
    let certs = certs.display();
    format!("kube-apiserver --etcd-servers={etcd} --cert-dir={certs} --bind-address=127.0.0.1 --secure-port={port}")
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn kubeadm_s_client(mut flags: Vec<String>, pki: &Path) -> Vec<String> {
    let pki = pki.display();
    flags.push(format!("--etcd-cafile={pki}/ca.crt"));
    flags.extend(
        ["cert", "key"].map(|kind| format!("--etcd-{kind}file={pki}/client.{}", kind.replace("cert", "crt"))),
    );
    flags
}

#[test]
fn health_and_grpc_under_kubeadm_s_flags() {
    let dir = TempDir::new().unwrap();
    write_certificates(dir.path());
    let (clients, metrics) = (free_port(), free_port());
    let _etcd = Running::start(
        &of_kubeadm(dir.path(), &dir.path().join("data"), clients, metrics),
        "ready to serve client requests",
    );
    let checks =
        "[+]data_corruption ok\n[+]linearizable_read ok\n[+]non_learner ok\n[+]serializable_read ok\nok\n";
    for (path, expected) in [
        ("livez", "ok\n"),
        ("readyz", "ok\n"),
        ("readyz?verbose", checks),
        ("livez?verbose&exclude=serializable_read", "ok\n"),
        ("livez/serializable_read", "ok\n"),
        ("health", r#"{"health":"true","reason":""}"#),
    ] {
        let told = curl(&["-f", &format!("http://127.0.0.1:{metrics}/{path}")]);
        assert_eq!(told, expected, "{path}");
    }
    let posted = [
        "-X",
        "POST",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        &format!("http://127.0.0.1:{metrics}/health"),
    ];
    assert_eq!(curl(&posted), "405");
    let shown = curl(&["-f", &format!("http://127.0.0.1:{metrics}/metrics")]);
    assert!(shown.contains("etcd_server_version{server_version=\"3.7.1\"} 1"), "{shown}");
    assert!(!shown.contains("current_revision"), "nobody has needed the store: {shown}");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (url, authority) = (format!("https://127.0.0.1:{clients}"), file("ca.crt"));
    let (certificate, key) = (file("client.crt"), file("client.key"));
    let known = ["--cacert", &authority, "--cert", &certificate, "--key", &key];
    assert!(curl(&[&known[..], &[&format!("{url}/version")]].concat()).contains(r#""etcdserver":"3.7.1""#));
    let call = ["-i", "--http2", "-H", "Content-Type: application/grpc", "-d", ""];
    let told = curl(&[&known[..], &call, &[&format!("{url}/etcdserverpb.KV/Other")]].concat());
    for line in [
        "HTTP/2 200",
        "grpc-status: 12",
        "grpc-message: unknown%20method%20Other%20for%20service%20etcdserverpb.KV",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let put = ["-f", "-d", r#"{"key":"YQ==","value":"Yg=="}"#, &format!("{url}/v3/kv/put")];
    assert!(curl(&[&known[..], &put].concat()).contains(r#""revision":"2""#));
    let shown = curl(&["-f", &format!("http://127.0.0.1:{metrics}/metrics")]);
    assert!(shown.contains("etcd_debugging_mvcc_current_revision 2\n"), "{shown}");
    let (code, told) = ended(&["healthcheck".to_owned(), format!("--url={url}/health")]);
    assert!(code == Some(1) && told.contains("remote error: tls: certificate required"), "{told}");
}

#[test]
fn what_hinders_the_stand_in_is_one_line() {
    let dir = TempDir::new().unwrap();
    write_certificates(dir.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    let (data, path) = (dir.path().join("data"), dir.path().display());
    std::fs::write(dir.path().join("bad"), "bad").unwrap();
    for (flag, why) in [
        (
            format!("--listen-metrics-urls=http://127.0.0.1:{taken}"),
            format!("cannot listen on http://127.0.0.1:{taken}/: "),
        ),
        (format!("--cert-file={path}/none"), format!("--cert-file: {path}/none: ")),
        (format!("--key-file={path}/none"), format!("--key-file: {path}/none: No such file")),
        (format!("--key-file={path}/bad"), format!("--key-file: {path}/bad is not a private key")),
        (format!("--key-file={path}/client.key"), "--cert-file and --key-file: ".to_owned()),
        (
            format!("--trusted-ca-file={path}/bad"),
            format!("--trusted-ca-file: {path}/bad: there is no certificate in it"),
        ),
        ("--listen-client-urls=unix:///etcd.sock".to_owned(), "must be http or https".to_owned()),
    ] {
        let mut flags = of_kubeadm(dir.path(), &data, free_port(), free_port());
        flags.push(flag);
        let (code, text) = ended(&flags);
        assert_eq!((code, text.lines().count()), (Some(1), 1), "{text}");
        assert!(text.contains(&why), "{why}: {text}");
    }
}

/// kubeadm's two static Pods where the server sees etcd's directory: its state is there after a restart.
#[test]
fn cluster_61_state_is_kept_in_the_directory_of_the_stand_in() {
    let (dir, certs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write_certificates(dir.path());
    let (data, clients, port) = (dir.path().join("data"), free_port(), free_port());
    let url = format!("https://127.0.0.1:{clients}");
    let flags = kubeadm_s_client(beside(&url, certs.path(), port), dir.path());
    let flags = [flags, vec!["--token-auth-file".to_owned(), tokens(dir.path())]].concat();
    // The two start together: the server waits for etcd.
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let mut child =
        command.args(&flags).env_remove("ROWPLANE_DATASTORE").stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let mut server = Running { child, log };
    let _etcd = Running::start(
        &of_kubeadm(dir.path(), &data, clients, free_port()),
        "ready to serve client requests",
    );
    server.wait_for(" ready ");
    let namespaces = format!("https://127.0.0.1:{port}/api/v1/namespaces");
    let known = ["-k", "-H", "Authorization: Bearer secret"];
    let made = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kept"}}"#;
    assert!(curl(&[&known[..], &["--json", made, &namespaces]].concat()).contains("\"kept\""));
    drop(server);
    assert!(data.join("state.db").exists());
    let _server = Running::start(&flags, " ready ");
    let kept = curl(&[&known[..], &["-f", &format!("{namespaces}/kept")]].concat());
    assert!(kept.contains("\"name\": \"kept\""), "{kept}");
    let verbose = curl(&[&known[..], &[&format!("https://127.0.0.1:{port}/readyz?verbose")]].concat());
    assert!(!verbose.contains("in memory"), "{verbose}");
}

/// A file with the token of an administrator. Returns its path.
fn tokens(dir: &Path) -> String {
    let path = dir.join("tokens.csv");
    std::fs::write(&path, "secret,admin,1,system:masters\n").unwrap();
    path.display().to_string()
}

/// A directory with the mark of another stand-in is that of another file system.
#[test]
fn cluster_61_a_server_that_does_not_see_the_directory_says_that_its_state_is_in_memory() {
    let (dir, certs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (clients, port) = (free_port(), free_port());
    let url = format!("http://127.0.0.1:{clients}");
    let flags = [
        "etcd".to_owned(),
        format!("--listen-client-urls={url}"),
        format!("--data-dir={}", dir.path().display()),
    ];
    let _etcd = Running::start(&flags, "ready to serve client requests");
    std::fs::write(dir.path().join("rowplane-etcd"), "another").unwrap();
    let flags =
        [beside(&url, certs.path(), port), vec!["--token-auth-file".to_owned(), tokens(dir.path())]].concat();
    let mut server = Running::start(&flags, "THE STATE IS IN MEMORY");
    server.wait_for(" ready ");
    let known = ["-k", "-H", "Authorization: Bearer secret"];
    let verbose = curl(&[&known[..], &["-f", &format!("https://127.0.0.1:{port}/readyz?verbose")]].concat());
    assert!(
        verbose.contains("\nwarn: the state is in memory and is lost when the server ends; "),
        "{verbose}"
    );
    assert!(verbose.ends_with("readyz check passed\n"), "{verbose}");
    assert!(!dir.path().join("state.db").exists());
}

#[test]
fn cluster_61_a_real_etcd_is_refused_unless_another_datastore_is_named() {
    let certs = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // The answer of an etcd at a path that it does not know.
    let etcd = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while head.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\n\r\n404 page not found\n").unwrap();
        let _ = stream.read(&mut [0]);
    });
    let flags = beside(&url, certs.path(), free_port());
    let (code, text) = ended(&flags);
    etcd.join().unwrap();
    assert_eq!((code, text.lines().count()), (Some(1), 1), "{text}");
    let why =
        format!("rowplane keeps its state in SQLite or PostgreSQL; {url} is an etcd. Set ROWPLANE_DATASTORE");
    assert!(text.contains(&why), "{text}");
    // Nobody listens there any more, and nobody is asked.
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.args(&flags).env("ROWPLANE_DATASTORE", "memory:").stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let mut server = Running { child, log };
    server.wait_for("--etcd-servers (--datastore says where state is kept)");
    server.wait_for(" ready ");
}
