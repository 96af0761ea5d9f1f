//! `rowplane serve`: its banner, its refusals, and how it ends.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{Server, refused, rowplane};

#[test]
fn the_kubeconfig_names_the_bound_address_and_signals_end_the_server() {
    let dir = TempDir::new().unwrap();
    let kubeconfig = || std::fs::read_to_string(dir.path().join("admin.kubeconfig")).unwrap();
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(dir.path());
        assert!(kubeconfig().contains(&format!("server: {}\n", server.url)), "{}", kubeconfig());
        assert_eq!(server.signal(signal), Some(0));
    }
}

/// In a container the file has another path than for those who read the line.
#[test]
fn the_path_of_the_kubeconfig_is_shown_as_its_reader_knows_it() {
    let dir = TempDir::new().unwrap();
    let path = "/home/you/a directory/admin.kubeconfig";
    let mut child = rowplane(dir.path(), &["--secure-port=0"])
        .env("ROWPLANE_KUBECONFIG_SHOWN_AS", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown = lines.find(|line| line.starts_with("export KUBECONFIG="));
    assert_eq!(shown, Some(format!("export KUBECONFIG='{path}'")));
    assert!(dir.path().join("admin.kubeconfig").exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_taken_port_is_named_in_one_line() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Server::start(first.path());
    let (code, text) = refused(second.path(), &["--secure-port", server.port()]);
    assert_eq!(code, Some(1));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(&format!("127.0.0.1:{} is already in use", server.port())), "{text}");
    assert!(!second.path().join("admin.kubeconfig").exists());
}

/// `--cert-dir=` asks for keys that nobody finds.
#[test]
fn the_directory_of_an_unnamed_one_goes_with_its_server() {
    let (dir, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Server::start(dir.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.args(["kube-apiserver", "--cert-dir=", "--bind-address=127.0.0.1", "--secure-port"]);
    let ended = command.arg(server.port()).env("TMPDIR", temporary.path()).output().unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert!(text.contains("is already in use"), "{text}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn refusals_are_one_line() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("tokens.csv"), "token,user\n").unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let tokens = dir.path().join("tokens.csv");
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--no-such-flag"], 2, "--no-such-flag"),
        (
            &["--datastore", "mysql://host"],
            2,
            "MySQL and MariaDB are not supported; use sqlite:, postgres: or memory:",
        ),
        (
            &["--token-auth-file", tokens.to_str().unwrap()],
            1,
            "tokens.csv: line 1: must have at least 3 columns",
        ),
        (&["--client-ca-file", tokens.to_str().unwrap()], 1, "tokens.csv is not a certificate"),
        (
            &["--storage-media-type=application/cbor"],
            2,
            "allowed values: application/json, application/vnd.kubernetes.protobuf, application/yaml",
        ),
        (&["--token-auth-file", "/nonexistent"], 1, "/nonexistent: No such file"),
    ];
    for (arguments, code, part) in cases {
        let (exit, text) = refused(dir.path(), arguments);
        assert_eq!(exit, Some(code), "{text}");
        assert!(text.starts_with("rowplane: ") && text.contains(part), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let (code, text) = refused(&dir.path().join("file"), &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("cannot create the data directory"), "{text}");
}

#[test]
fn a_corrupt_key_is_named() {
    let dir = TempDir::new().unwrap();
    assert_eq!(Server::start(dir.path()).signal("TERM"), Some(0));
    std::fs::write(dir.path().join("pki/ca.key"), "garbage").unwrap();
    let (code, text) = refused(dir.path(), &["--secure-port=0"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("pki/ca.key is not a private key") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_key_that_cannot_be_read_is_named() {
    let dir = TempDir::new().unwrap();
    assert_eq!(Server::start(dir.path()).signal("TERM"), Some(0));
    // Made unreadable in a way that also affects root.
    let key = dir.path().join("pki/ca.key");
    std::fs::remove_file(&key).unwrap();
    std::fs::create_dir(&key).unwrap();
    let (code, text) = refused(dir.path(), &["--secure-port=0"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("pki/ca.key: Is a directory") && text.lines().count() == 1, "{text}");
    let files = ["--tls-cert-file=/nonexistent.crt", "--tls-private-key-file=/nonexistent.key"];
    let (code, text) = refused(&dir.path().join("new"), &files);
    assert_eq!(code, Some(1));
    assert!(text.contains("/nonexistent.") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_store_is_backed_up_beside_its_server_and_restored_elsewhere() {
    let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = old.path().join("backup");
    let run = |command: &str, data_dir: &Path| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        program.arg(command).arg(&file).arg("--data-dir").arg(data_dir).output().unwrap()
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let _server = Server::start(old.path());
    let (saved, restored) = (run("backup", old.path()), run("restore", &new.path().join("made")));
    let printed = text(saved.stdout);
    assert!(printed.contains("4  namespaces\n") && printed.contains("objects at revision"), "{printed}");
    assert_eq!((text(restored.stdout), text(restored.stderr)), (printed, String::new()));
    let _moved = Server::start(&new.path().join("made"));

    let again = run("restore", old.path());
    let text = text(again.stderr);
    assert_eq!((again.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(
        text.starts_with("rowplane: the database ") && text.contains("in use by another server"),
        "{text}"
    );
}

/// The effective storage versions are logged while the server runs; a value that is no storage version is refused.
#[test]
fn storage_versions_on_the_command_line() {
    let dir = TempDir::new().unwrap();
    let flag = "--storage-version=autoscaling/horizontalpodautoscalers";
    for (value, why) in [
        ("=v3", "can only be decoded in autoscaling/v1, autoscaling/v2"),
        ("", "must be <group>/<resource>=<version>"),
    ] {
        let (code, message) = refused(dir.path(), &[&format!("{flag}{value}")]);
        assert_eq!(code, Some(2));
        assert!(message.contains(why), "{message}");
    }
    let (_, message) = refused(dir.path(), &["--storage-version=core/nothing=v1"]);
    assert!(message.contains("no resource nothing is stored"), "{message}");

    let _server = Server::start(dir.path());
    let mut status = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let Output { status, stdout, .. } =
        status.args(["status", "--storage-versions"]).arg("--data-dir").arg(dir.path()).output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    assert!(status.success());
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(line("server ").contains("apiserver-"), "{text}");
    let cells: Vec<String> = line("namespaces ").split_whitespace().map(str::to_owned).collect();
    assert_eq!(cells, ["namespaces", "4", "v1", "protobuf", "(4)", "<none>", "v1", "1"], "{text}");
}

/// The regular files below a directory, with their modes.
fn modes(dir: &Path) -> Vec<(std::path::PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        match metadata.is_dir() {
            true => found.extend(modes(&entry.path())),
            false => found.push((entry.path(), metadata.permissions().mode() & 0o777)),
        }
    }
    found
}

/// Also in a directory that another user made, and for files of an earlier release or copied ones, whose modes are
/// narrowed.
#[test]
fn files_are_their_owners_alone() {
    let dir = TempDir::new().unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(dir.path(), 0o755);
    for earlier in [false, true] {
        if earlier {
            for (path, _) in modes(dir.path()) {
                set(&path, 0o644);
            }
        }
        let mut server = Server::start(dir.path());
        let found = modes(dir.path());
        let named = |part: &str| found.iter().any(|(path, _)| path.to_str().unwrap().contains(part));
        for part in
            ["state.db", "state.db-wal", "state.db-shm", "state.db.lock", "ca.key", "admin.kubeconfig"]
        {
            assert!(named(part), "{part}: {found:?}");
        }
        for (path, mode) in &found {
            let given_away = path.extension().is_some_and(|extension| extension == "crt");
            assert_eq!(
                *mode,
                if given_away { 0o644 } else { 0o600 },
                "{}, earlier: {earlier}",
                path.display()
            );
        }
        assert_eq!(server.signal("TERM"), Some(0));
    }
}

/// A second server is refused whatever name of the database it uses.
#[test]
fn a_database_in_use_is_refused_by_another_name() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let _server = Server::start(first.path());
    let link = second.path().join("state.db");
    std::os::unix::fs::symlink(first.path().join("state.db"), &link).unwrap();
    let (code, text) = refused(second.path(), &["--secure-port=0"]);
    assert_eq!(code, Some(1));
    assert!(text.lines().last().unwrap().contains("is in use by another server"), "{text}");
    std::fs::remove_file(&link).unwrap();
    std::fs::hard_link(first.path().join("state.db"), &link).unwrap();
    let (code, text) = refused(second.path(), &["--secure-port=0"]);
    assert_eq!(code, Some(1));
    assert!(text.lines().last().unwrap().contains("has 2 names (hard links)"), "{text}");
}

/// The way in which a test library's server ends, even if the library's process is killed.
#[test]
fn the_end_of_standard_input_ends_a_server_that_is_asked_to() {
    for personality in [&[][..], &["kube-apiserver"]] {
        let dir = TempDir::new().unwrap();
        let cert_dir = format!("--cert-dir={}", dir.path().display());
        let own_flags = if personality.is_empty() { Vec::new() } else { vec![cert_dir] };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        command.args(personality).arg("--data-dir").arg(dir.path()).arg(format!("--secure-port={port}"));
        let mut child = command
            .args(["--bind-address=127.0.0.1", "--exit-with-stdin"])
            .args(own_flags)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(log.any(|line| line.contains(" ready ")), "it stands while the pipe is open");
        drop(child.stdin.take());
        assert!(log.any(|line| line.contains("end of standard input")));
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
