//! `rowplane doctor`: each fault is made, found, and told with the step that mends it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Server, rowplane};

/// The doctor of a directory, in an environment without proxies, kubectl and kubeconfigs.
fn doctor(dir: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.arg("doctor").arg("--data-dir").arg(dir).args(flags);
    command.env_clear().env("PATH", "/nonexistent").env("HOME", "/nonexistent");
    command
}

/// Each finding about a subject as its verdict, text and cure; and the exit status.
fn findings(command: &mut Command, subject: &str) -> (Option<i32>, Vec<[String; 3]>) {
    let output = command.arg("--output=json").output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = document.as_array().unwrap().iter().filter(|one| one["subject"] == subject);
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    let all = all.map(|one| ["verdict", "text", "cure"].map(|field| text(one, field))).collect();
    (output.status.code(), all)
}

/// The only finding about a subject.
fn finding(command: &mut Command, subject: &str) -> [String; 3] {
    let (_, found) = findings(command, subject);
    let [one] = &found[..] else { panic!("{subject}: {found:?}") };
    one.clone()
}

#[test]
fn a_healthy_server_is_told_in_lines() {
    let dir = TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    let server = Server::start(dir.path());
    let kubeconfig = dir.path().join("admin.kubeconfig");
    let output = doctor(dir.path(), &[]).env("KUBECONFIG", &kubeconfig).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{text}");
    for (subject, part) in [
        ("directory", "alone"),
        ("disk", "free below"),
        ("certificates", "are valid"),
        ("store", "objects at revision"),
        ("replicas", "one server is registered"),
        ("server", &format!("{} is ready", server.url)),
        ("clock", "as that of the server"),
        ("kubeconfig", "points to"),
    ] {
        let line = text.lines().find(|line| line.starts_with(&format!("ok       {subject} ")));
        assert!(line.is_some_and(|line| line.contains(part)), "{subject}: {text}");
    }
}

#[test]
fn faults_of_the_directory_are_found() {
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("missing");
    let [verdict, text, cure] = finding(&mut doctor(&missing, &[]), "directory");
    assert_eq!((verdict.as_str(), text), ("warning", format!("{} is not there", missing.display())));
    assert!(cure.contains("--data-dir"), "{cure}");

    assert_eq!(Server::start(dir.path()).signal("TERM"), Some(0));
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let [verdict, _, cure] = finding(&mut doctor(dir.path(), &[]), "directory");
    assert_eq!((verdict.as_str(), cure), ("warning", format!("chmod 700 {}", dir.path().display())));

    let certificate = dir.path().join("pki/apiserver.crt");
    std::fs::write(&certificate, "garbage").unwrap();
    let (code, found) = findings(&mut doctor(dir.path(), &[]), "certificates");
    let [[verdict, text, cure]] = &found[..] else { panic!("{found:?}") };
    assert_eq!((code, verdict.as_str()), (Some(1), "wrong"));
    assert_eq!(*text, format!("{} is no certificate", certificate.display()));
    // The cure mends it.
    assert_eq!(*cure, format!("rm {}, and start the server, which issues it anew", certificate.display()));
    std::fs::remove_file(&certificate).unwrap();
    let _server = Server::start(dir.path());
    assert_eq!(finding(&mut doctor(dir.path(), &[]), "certificates")[0], "ok");
}

#[test]
fn faults_of_the_store_are_found() {
    let dir = TempDir::new().unwrap();
    let datastore = |url: &str| doctor(dir.path(), &["--datastore", url]);
    let [verdict, text, _] = finding(&mut datastore("sqlite:/nonexistent/s.db"), "store");
    assert_eq!((verdict.as_str(), text.as_str()), ("warning", "sqlite:/nonexistent/s.db is not there"));
    let [verdict, text, cure] = finding(&mut datastore("postgres://u@127.0.0.1:1/d"), "store");
    assert!(verdict == "wrong" && text.contains("refused"), "{text}");
    assert!(cure.contains("check that PostgreSQL runs there"), "{cure}");
    let file = dir.path().join("s.db");
    std::fs::write(&file, "this is no database, however long it may be, and never was one").unwrap();
    let [verdict, _, cure] = finding(&mut datastore(&format!("sqlite:{}", file.display())), "store");
    assert!(verdict == "wrong" && cure.contains("PRAGMA quick_check"), "{cure}");
}

#[test]
fn faults_of_the_server_are_found() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::start(dir.path());
    // One that has stopped, and one that holds the database and does not answer: here it has another address.
    let kubeconfig = dir.path().join("admin.kubeconfig");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    std::fs::write(&kubeconfig, text.replace(&server.url, "https://127.0.0.1:1")).unwrap();
    let [verdict, told, cure] = finding(&mut doctor(dir.path(), &[]), "server");
    assert_eq!(verdict, "wrong");
    assert!(told.starts_with(&format!("process {} holds the database", server.child.id())), "{told}");
    assert!(cure.contains(&format!("kill {}", server.child.id())), "{cure}");
    assert_eq!(server.signal("TERM"), Some(0));
    let [verdict, told, cure] = finding(&mut doctor(dir.path(), &[]), "server");
    assert!(verdict == "warning" && told.starts_with("none runs: "), "{told}");
    assert_eq!(cure, format!("rowplane serve --data-dir {}", dir.path().display()));

    // Another server at the address of this directory's.
    let other = TempDir::new().unwrap();
    let other = Server::start(other.path());
    std::fs::write(&kubeconfig, text.replace(&server.url, &other.url)).unwrap();
    let [verdict, told, _] = finding(&mut doctor(dir.path(), &[]), "server");
    assert!(verdict == "wrong" && told.contains("does not answer as this directory's server"), "{told}");
}

#[test]
fn faults_of_the_surroundings_are_found() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Server::start(dir.path());
    let own = dir.path().join("admin.kubeconfig");
    let export = format!("export KUBECONFIG={}", own.display());
    let with = |path: &Path| finding(doctor(dir.path(), &[]).env("KUBECONFIG", path), "kubeconfig");
    assert_eq!(with(&own)[0], "ok");
    assert_eq!(
        with(Path::new("/nonexistent"))[1..],
        ["/nonexistent is not there".to_owned(), export.clone()]
    );

    let _elsewhere = Server::start(other.path());
    let [verdict, told, cure] = with(&other.path().join("admin.kubeconfig"));
    assert_eq!((verdict.as_str(), &cure), ("warning", &export));
    assert!(told.ends_with(&format!("not to {}", server.url)), "{told}");

    // The kubeconfig of before, when the directory was made anew.
    let of_before = other.path().join("before");
    let foreign = std::fs::read_to_string(other.path().join("admin.kubeconfig")).unwrap();
    std::fs::write(&of_before, foreign.replace(&_elsewhere.url, &server.url)).unwrap();
    let [verdict, told, cure] = with(&of_before);
    assert_eq!((verdict.as_str(), &cure), ("wrong", &export));
    assert!(told.contains("another CA"), "{told}");

    let mut behind_proxy = doctor(dir.path(), &[]);
    let [verdict, told, cure] = finding(behind_proxy.env("HTTPS_PROXY", "http://proxy:3128"), "proxy");
    assert!(verdict == "wrong" && told.starts_with("HTTPS_PROXY=http://proxy:3128 "), "{told}");
    assert_eq!(cure, "export NO_PROXY=127.0.0.1");

    let programs = TempDir::new().unwrap();
    let kubectl = programs.path().join("kubectl");
    std::fs::write(&kubectl, "#!/bin/sh\necho '{\"clientVersion\": {\"minor\": \"28+\"}}'\n").unwrap();
    std::fs::set_permissions(&kubectl, Permissions::from_mode(0o755)).unwrap();
    let [verdict, told, _] = finding(doctor(dir.path(), &[]).env("PATH", programs.path()), "kubectl");
    assert_eq!(verdict, "warning");
    assert!(told.starts_with("1.28 is more than one minor version away"), "{told}");
}

/// Programs read each command's output without guessing.
#[test]
fn status_is_told_to_people_and_to_programs() {
    let dir = TempDir::new().unwrap();
    let status = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        let output = command.arg("status").arg("--data-dir").arg(dir.path()).args(flags).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let mut server = Server::of(&mut rowplane(dir.path(), &["--secure-port=0"]));
    let text = status(&[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("health   ready: {}", server.url));
    assert!(lines[1].starts_with(&format!("store    sqlite:{}/state.db, ", dir.path().display())), "{text}");
    assert!(lines[2].starts_with("objects  ") && lines[3].starts_with("server   apiserver-"), "{text}");
    assert!(lines[3].contains(" since ") && lines[3].contains(" last heartbeat "), "{text}");
    assert!(!text.contains("STORED VERSIONS"), "{text}");
    let document: Value = serde_json::from_str(&status(&["-o", "json"])).unwrap();
    assert_eq!(
        (&document["health"]["status"], &document["health"]["url"]),
        (&"ready".into(), &server.url.clone().into())
    );
    let namespaces =
        document["resources"].as_array().unwrap().iter().find(|one| one["resource"] == "namespaces");
    assert_eq!(namespaces.unwrap()["objects"], 4);
    assert!(status(&["-o", "yaml"]).contains("\nhealth:\n"));
    server.signal("TERM");
    assert!(status(&[]).starts_with("health   not ready: "), "{}", status(&[]));
}
