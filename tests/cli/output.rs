//! Output for programs: `-o json|yaml` of every command that shows something.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Server, rowplane};

fn output(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    // Without proxies and kubeconfigs, about which the doctor would have something to say.
    let output = command.env_clear().args(arguments).arg("--data-dir").arg(dir).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a namespace, about which there is an audit event then.
fn write(url: &str) {
    let object = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}"#;
    let mut curl = Command::new("curl");
    curl.args(["-sSk", "--fail", "--noproxy", "*", "--header", "Authorization: Bearer t", "--json", object]);
    let done = curl.arg(format!("{url}/api/v1/namespaces")).output().expect("run curl");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_command_that_shows_something_does_so_for_programs() {
    let dir = TempDir::new().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "t,admin,1,system:masters\n").unwrap();
    let tokens = format!("--token-auth-file={}", tokens.display());
    let server = Server::of(&mut rowplane(dir.path(), &["--secure-port=0", &tokens]));
    write(&server.url);
    let backup = dir.path().join("backup");
    let backup = backup.to_str().unwrap();
    let commands: [(&[&str], &str); 5] = [
        (&["status"], "/health/status"),
        (&["auth", "why", "--as=alice", "get", "pods"], "/allowed"),
        (&["auth", "who-can", "create", "leases"], "/0/subject"),
        (&["doctor"], "/0/subject"),
        (&["backup", backup], "/objects/namespaces"),
    ];
    for (command, member) in commands {
        let json = output(dir.path(), &[command, &["-o", "json"]].concat());
        let document: Value = serde_json::from_str(&json).expect(&json);
        assert!(document.pointer(member).is_some(), "{command:?}: {json}");
        let yaml = output(dir.path(), &[command, &["--output=yaml"]].concat());
        let of_yaml: Value = serde_saphyr::from_str(&yaml).expect(&yaml);
        assert!(of_yaml.pointer(member).is_some(), "{command:?}: {yaml}");
    }
    // Events are a stream: a line each, or a document each.
    let events = output(dir.path(), &["audit", "-o", "json"]);
    let first: Value = serde_json::from_str(events.lines().next().expect("an event")).expect(&events);
    assert_eq!(first["kind"], "Event");
    assert_eq!(output(dir.path(), &["audit", "-o", "yaml"]).matches("---\n").count(), events.lines().count());
}

/// Nobody reads colours from a pipe.
#[test]
fn output_that_no_terminal_shows_has_no_colors() {
    let dir = TempDir::new().unwrap();
    let _server = Server::start(dir.path());
    for command in ["status", "doctor"] {
        assert!(!output(dir.path(), &[command]).contains('\u{1b}'));
    }
}
