//! `rowplane certs`: files, modes and subjects, and a server that believes them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::Server;

fn certs(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.env_clear().arg("certs").args(arguments).arg("--data-dir").arg(dir).output().unwrap()
}

fn listed(dir: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = certs(dir, &[arguments, &["-o", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap().as_array().unwrap().clone()
}

/// Certificates are made before the first start, with keys for their owner alone; the server that starts then trusts them.
#[test]
fn certificates_are_issued_before_the_first_start() {
    let dir = TempDir::new().unwrap();
    let made = listed(dir.path(), &["issue", "all"]);
    assert_eq!(made.len(), 10, "{made:?}");
    assert!(made.iter().all(|one| one["written"] == true && one["name"] != "super-admin"));
    let pki = dir.path().join("pki");
    let key = pki.join("apiserver-kubelet-client.key");
    for path in [&key, &pki.join("ca.key"), &dir.path().join("scheduler.conf")] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert!(std::fs::read_to_string(&key).unwrap().starts_with("-----BEGIN EC PRIVATE KEY-----"));
    let certificate = pki.join("apiserver-kubelet-client.crt");
    let flags = [
        "--secure-port=0".to_owned(),
        format!("--kubelet-client-certificate={}", certificate.display()),
        format!("--kubelet-client-key={}", key.display()),
    ];
    std::fs::rename(&key, pki.join("elsewhere")).unwrap();
    let (_, refusal) = crate::refused(dir.path(), &flags.each_ref().map(String::as_str));
    assert!(refusal.contains("`rowplane certs issue apiserver-kubelet-client` makes the two"), "{refusal}");
    std::fs::rename(pki.join("elsewhere"), &key).unwrap();
    let server = Server::of(&mut crate::rowplane(dir.path(), &flags.each_ref().map(String::as_str)));
    let mut curl = Command::new("curl");
    curl.args([
        "-sS",
        "--noproxy",
        "*",
        "--json",
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}",
    ]);
    curl.arg("--cacert").arg(pki.join("ca.crt")).arg("--cert").arg(&certificate).arg("--key").arg(&key);
    let output =
        curl.arg(format!("{}/apis/authentication.k8s.io/v1/selfsubjectreviews", server.url)).output();
    let review: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(review.pointer("/status/userInfo/username").unwrap(), "kube-apiserver-kubelet-client");
}

/// A file that exists is never written over but by a renewal, which makes a new key on request alone.
#[test]
fn files_are_kept_until_they_are_renewed() {
    let dir = TempDir::new().unwrap();
    listed(dir.path(), &["issue", "apiserver-kubelet-client", "super-admin", "--server=https://h:1"]);
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let files = ["pki/apiserver-kubelet-client.crt", "pki/apiserver-kubelet-client.key", "super-admin.conf"];
    let before = files.map(read);
    let again = listed(dir.path(), &["issue", "apiserver-kubelet-client", "super-admin"]);
    assert!(again.iter().all(|one| one["written"] == false), "{again:?}");
    assert_eq!(files.map(read), before);
    listed(dir.path(), &["renew", "apiserver-kubelet-client", "super-admin"]);
    let renewed = files.map(read);
    assert!(renewed[0] != before[0] && renewed[1] == before[1] && renewed[2] != before[2]);
    assert!(renewed[2].contains("https://h:1"), "{}", renewed[2]);
    listed(dir.path(), &["renew", "apiserver-kubelet-client", "--new-key"]);
    assert_ne!(read(files[1]), before[1]);
    let names = |list: Vec<Value>| {
        list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(listed(dir.path(), &["list"])), ["ca", "apiserver-kubelet-client", "super-admin"]);
    assert_eq!(listed(dir.path(), &["renew", "all"]).len(), 2);
    let without_key = read(files[2]).replace("client-key-data", "client-key");
    std::fs::write(dir.path().join(files[2]), &without_key).unwrap();
    assert!(!certs(dir.path(), &["renew", "super-admin", "--new-key"]).status.success());
    assert_eq!(read(files[2]), without_key);
    let missing = certs(dir.path(), &["renew", "scheduler"]);
    let text = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success() && text.contains("scheduler.conf: No such file"), "{text}");
}

/// The CA's key may lie elsewhere; a CA that is named has to exist.
#[test]
fn the_key_of_the_ca_can_stay_off_the_servers() {
    let (home, server) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let [certificate, key] = ["ca.crt", "ca.key"].map(|name| home.path().join("pki").join(name));
    let ca = [format!("--ca-cert={}", certificate.display()), format!("--ca-key={}", key.display())];
    let issue = ["issue", "kube-proxy", &ca[0], &ca[1]];
    assert!(!certs(server.path(), &issue).status.success());
    assert!(!certificate.exists());
    listed(home.path(), &["issue", "admin"]);
    listed(server.path(), &issue);
    assert!(server.path().join("kube-proxy.conf").exists() && !server.path().join("pki/ca.key").exists());
}

/// Files that do not belong together are named, and stay as they are.
#[test]
fn kept_files_are_checked() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for dir in [&dir, &other] {
        listed(dir.path(), &["issue", "apiserver", "scheduler"]);
    }
    let pki = |dir: &TempDir, name: &str| dir.path().join("pki").join(name);
    let refusal = |name: &str| {
        let output = certs(dir.path(), &["issue", name]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.lines().count() == 1, "{text}");
        text
    };
    std::fs::copy(pki(&other, "apiserver.key"), pki(&dir, "apiserver.key")).unwrap();
    let text = refusal("apiserver");
    assert!(
        text.contains("apiserver.crt does not belong to key") && text.contains("apiserver.key"),
        "{text}"
    );
    for name in ["ca.crt", "ca.key"] {
        std::fs::copy(pki(&other, name), pki(&dir, name)).unwrap();
    }
    let text = refusal("scheduler");
    assert!(text.contains("scheduler.conf is not signed by the CA") && text.contains("ca.crt"), "{text}");
    let subject = |one: &Value| {
        (one["subject"].as_str().unwrap().to_owned(), one["issuer"].as_str().unwrap().to_owned())
    };
    let list = listed(dir.path(), &["list"]);
    let users = |name| ("CN=".to_owned() + name, "CN=rowplane-ca".to_owned());
    assert_eq!(
        list.iter().map(subject).collect::<Vec<_>>(),
        ["rowplane-ca", "kube-apiserver", "system:kube-scheduler"].map(users)
    );
}

/// A server starts with files that were made elsewhere, without the CA's key, which it neither needs nor makes.
#[test]
fn a_server_runs_without_the_key_of_its_ca() {
    let (home, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    listed(home.path(), &["issue", "all", "--tls-san=api.example.org"]);
    let pki = dir.path().join("pki");
    std::fs::create_dir(&pki).unwrap();
    for name in [
        "ca.crt",
        "apiserver.crt",
        "apiserver.key",
        "apiserver-kubelet-client.crt",
        "apiserver-kubelet-client.key",
        "front-proxy-ca.crt",
        "front-proxy-client.crt",
        "front-proxy-client.key",
        "sa.key",
    ] {
        std::fs::copy(home.path().join("pki").join(name), pki.join(name)).unwrap();
    }
    let flag = |flag: &str, name: &str| format!("--{flag}={}", pki.join(name).display());
    let flags = [
        "--secure-port=0".to_owned(),
        flag("proxy-client-cert-file", "front-proxy-client.crt"),
        flag("proxy-client-key-file", "front-proxy-client.key"),
        flag("requestheader-client-ca-file", "front-proxy-ca.crt"),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
    ];
    let flags = flags.each_ref().map(String::as_str);
    let mut child = crate::rowplane(dir.path(), &flags).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap())).map(Result::unwrap);
    let banner: Vec<String> = lines.take(4).collect();
    let port = banner[2].rsplit_once(':').unwrap().1.to_owned();
    assert!(banner[3].contains("users") && !dir.path().join("admin.kubeconfig").exists(), "{banner:?}");
    let mut curl = Command::new("curl");
    curl.args([
        "-sSf",
        "--noproxy",
        "*",
        "--connect-to",
        &format!("api.example.org:443:127.0.0.1:{port}"),
        "--cacert",
    ]);
    let answer = curl.arg(pki.join("ca.crt")).arg("https://api.example.org/readyz").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&answer.stdout),
        "ok",
        "{:?}",
        String::from_utf8_lossy(&answer.stderr)
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!pki.join("ca.key").exists() && !pki.join("admin.key").exists());

    std::fs::remove_file(pki.join("apiserver.crt")).unwrap();
    let (_, text) = crate::refused(dir.path(), &flags);
    assert!(
        text.contains("apiserver.crt is missing or does not fit") && text.contains("pki/ca.key"),
        "{text}"
    );
}
