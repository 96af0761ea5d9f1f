//! `rowplane test -- CMD`: a server for one command.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A definition with one version, whose schema has this type.
fn definition(plural: &str, of_type: &str) -> String {
    format!(
        "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  names: {{plural: {plural}, kind: Kind{plural}}}
  scope: Namespaced
  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: {of_type}}}}}}}
"
    )
}

/// `rowplane test` with a directory for what it makes, which is empty again when it is done.
fn test(temporary: &Path, flags: &[&str], command: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    program.arg("test").args(flags).arg("--").args(command).env("TMPDIR", temporary);
    program
}

fn shell(temporary: &Path, flags: &[&str], script: &str) -> Output {
    test(temporary, flags, &["sh", "-c", script]).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

/// A running `rowplane test`, whose command has printed its first line.
fn running(temporary: &Path, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = test(temporary, &[], &["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, lines)
}

fn signal(id: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &id.to_string()]).status().unwrap().success());
}

#[test]
fn the_command_finds_its_server_and_its_status_is_the_program_s() {
    let dir = TempDir::new().unwrap();
    let ran = shell(dir.path(), &[], "cat $KUBECONFIG; ls $KUBEBUILDER_ASSETS; umask; exit 7");
    let printed = text(&ran.stdout);
    assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(7), ""));
    for part in ["server: https://127.0.0.1:", "client-certificate-data", "kube-apiserver\n", "etcd\n"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let own = Command::new("sh").args(["-c", "umask"]).output().unwrap();
    assert!(printed.ends_with(text(&own.stdout)), "the mask of files is the caller's: {printed}");
    assert!(is_empty(dir.path()));
    for (script, code) in [("exit 0", 0), ("kill -s TERM $$", 143), ("kill -s KILL $$", 137)] {
        assert_eq!(shell(dir.path(), &[], script).status.code(), Some(code), "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_run_leaves_nothing_behind() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let file = dir.path().join("file");
    for (command, code) in [("/nonexistent/program", 127), (file.to_str().unwrap(), 126)] {
        let temporary = TempDir::new().unwrap();
        let ran = test(temporary.path(), &[], &[command]).output().unwrap();
        let told = text(&ran.stderr);
        assert_eq!((ran.status.code(), told.lines().count()), (Some(code), 1), "{told}");
        assert!(told.starts_with(&format!("rowplane: cannot run {command}: ")), "{told}");
        assert!(is_empty(temporary.path()));
    }
}

/// Sent to the program alone, as `kill` and CI systems do; a terminal sends them to both.
#[test]
fn signals_reach_the_command() {
    let dir = TempDir::new().unwrap();
    for (name, code) in [("TERM", 3), ("INT", 4), ("HUP", 5), ("QUIT", 6)] {
        let script = "for s in TERM:3 INT:4 HUP:5 QUIT:6; do trap \"echo ${s%:*}; exit ${s#*:}\" ${s%:*}; done; echo ready; \
             while :; do sleep 0.01; done";
        let (mut child, mut lines) = running(dir.path(), script);
        signal(child.id(), name);
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!((rest, child.wait().unwrap().code()), (format!("{name}\n"), Some(code)));
    }
    let (mut child, _lines) = running(dir.path(), "echo ready; exec sleep 600");
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130), "128 and the number of SIGINT");
    assert!(is_empty(dir.path()));
}

#[test]
fn definitions_are_served_before_the_command_starts() {
    let (dir, crds) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let several = definition("apples", "object")
        + "---\n# nothing\n---\nkind: ConfigMap\n"
        + &definition("pears", "object");
    std::fs::write(crds.path().join("fruit.yaml"), several).unwrap();
    std::fs::write(crds.path().join("notes.txt"), "{").unwrap();
    let file = crds.path().join("list.json");
    let item = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "nuts.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "nuts", "kind": "Nut"}, "versions": [
        {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
    std::fs::write(&file, format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{item}]}}"#)).unwrap();
    let (all, one) = (format!("--crds={}", crds.path().display()), format!("--crds={}", file.display()));
    let tokens = crds.path().join("tokens.csv");
    std::fs::write(&tokens, "t,admin,1,system:masters\n").unwrap();
    let tokens = format!("--token-auth-file={}", tokens.display());
    let script = "url=$(sed -n 's/.*server: //p' $KUBECONFIG); curl -sk -H 'Authorization: Bearer t' $url/apis/example.com/v1";
    for (crds, names) in
        [(&[all.as_str(), one.as_str()][..], &["apples", "nuts", "pears"][..]), (&[&one], &["nuts"])]
    {
        let ran = shell(dir.path(), &[&[tokens.as_str()], crds].concat(), script);
        let found: serde_json::Value =
            serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
        let found = found["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        assert_eq!(found, names);
    }
}

#[test]
fn a_definition_that_cannot_be_used_is_one_line() {
    let (dir, crds) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let names_taken = definition("apples", "object")
        + &definition("apricots", "object").replace("Kindapricots", "Kindapples");
    let cases = [
        (definition("apples", "nothing"), "must be object at the root"),
        (names_taken, "\"KindapplesList\" is already in use"),
        ("a: [".to_owned(), "did not find expected"),
        ("--- x\n".to_owned(), "invalid Yaml document separator: x"),
        ("kind: ConfigMap\n".to_owned(), "there is no CustomResourceDefinition in it"),
        (
            definition("apples", "object")
                .replace("apiextensions.k8s.io/v1\n", "apiextensions.k8s.io/v1beta1\n"),
            "v1beta1",
        ),
    ];
    let file = crds.path().join("crd.yaml");
    for (content, why) in cases {
        std::fs::write(&file, content).unwrap();
        let ran = shell(dir.path(), &["--crds", file.to_str().unwrap()], "echo the command runs");
        let told = text(&ran.stderr);
        assert_eq!((ran.status.code(), text(&ran.stdout), told.lines().count()), (Some(1), "", 1), "{told}");
        let start = format!("rowplane: the definition in {} cannot be used: ", file.display());
        assert!(told.starts_with(&start) && told.contains(why), "{why}: {told}");
        assert!(is_empty(dir.path()), "{told}");
    }
    let ran = shell(dir.path(), &["--crds=/nonexistent"], "echo the command runs");
    assert!(text(&ran.stderr).contains("/nonexistent cannot be used: No such file"), "{}", text(&ran.stderr));
}

/// The flags of a server count, but what a developer has in the environment for another one does not.
#[test]
fn the_environment_does_not_choose_the_store() {
    let dir = TempDir::new().unwrap();
    let mut command = test(dir.path(), &[], &["true"]);
    let ran =
        command.env("ROWPLANE_DATASTORE", "mysql://").env("ROWPLANE_SECURE_PORT", "1").output().unwrap();
    assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(0), ""));
    let kept = dir.path().join("kept");
    let flags =
        [format!("--data-dir={}", kept.display()), format!("--datastore=sqlite:{}/s.db", kept.display())];
    let ran = shell(dir.path(), &flags.each_ref().map(String::as_str), "echo $KUBECONFIG");
    assert_eq!(text(&ran.stdout), format!("{}/admin.kubeconfig\n", kept.display()));
    assert!(kept.join("s.db").exists());
    let ran = shell(dir.path(), &["--exit-with-stdin"], "true");
    assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(2), ""));
}
