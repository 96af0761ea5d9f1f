//! `rowplane branch` and `rowplane try`: what changes on a fork of a running server, and what becomes of it.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Server, rowplane};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A running server, and a kubeconfig with a token, so that scripts need nothing but curl.
struct Cluster {
    dir: TempDir,
    temporary: TempDir,
    server: Server,
}

impl Cluster {
    fn start() -> Self {
        let (dir, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let tokens = dir.path().join("tokens.csv");
        std::fs::write(&tokens, "t,admin,1,system:masters\n").unwrap();
        let tokens = format!("--token-auth-file={}", tokens.display());
        let server = Server::of(&mut rowplane(dir.path(), &["--secure-port=0", &tokens]));
        let ca = dir.path().join("pki/ca.crt");
        let config = json!({
            "kind": "Config", "apiVersion": "v1", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority": ca}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let cluster = Self { dir, temporary, server };
        std::fs::write(cluster.kubeconfig(), config.to_string()).unwrap();
        cluster
    }

    fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("token.kubeconfig")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        command.args(arguments).env("KUBECONFIG", self.kubeconfig()).env("TMPDIR", self.temporary.path());
        command.output().unwrap()
    }

    /// Runs a subcommand of `branch`, which must succeed.
    fn branch(&self, arguments: &[&str]) -> String {
        let ran = self.run(&[&["branch"], arguments].concat());
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        text(&ran.stdout).to_owned()
    }

    fn send(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.server.url);
        let ran = Command::new("sh").args(["-c", &curl(method, &url, &body)]).output().unwrap();
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stdout)))
    }

    fn get(&self, path: &str) -> Value {
        self.send("GET", path, json!(null))
    }

    fn branches(&self) -> usize {
        self.get("/rowplane/v1/branches")["items"].as_array().unwrap().len()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A request as a line of a script.
fn curl(method: &str, url: &str, body: &Value) -> String {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { format!("-d '{body}'") };
    format!("curl -sk -X {method} -H 'Authorization: Bearer t' -H 'Content-Type: {media}' {body} {url}")
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": value}})
}

/// A script whose requests go to the server of KUBECONFIG.
fn script(requests: &[(&str, &str, Value)], end: &str) -> String {
    let mut script = "url=$(sed -n 's/.*server: //p' $KUBECONFIG)\n".to_owned();
    for (method, path, body) in requests {
        script.push_str(&format!("{} >/dev/null\n", curl(method, &format!("$url{path}"), body)));
    }
    script + end
}

#[test]
fn a_trial_shows_what_its_command_changes_and_leaves_the_cluster_alone() {
    let cluster = Cluster::start();
    for name in ["a", "gone"] {
        cluster.send("POST", CONFIGMAPS, config_map(name, "0"));
    }
    let (a, gone) = (format!("{CONFIGMAPS}/a"), format!("{CONFIGMAPS}/gone"));
    let requests = [
        ("POST", CONFIGMAPS, config_map("b", "new")),
        ("PATCH", &*a, json!({"data": {"k": "1"}})),
        ("DELETE", &*gone, json!(null)),
    ];
    let ran = cluster.run(&["try", "--", "sh", "-c", &script(&requests, "exit 3")]);
    let shown = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(3), "{shown} {}", text(&ran.stderr));
    for line in [
        "ADDED    configmaps default/b\n",
        "MODIFIED configmaps default/a\n  data.k:  \"0\" -> \"1\"  (curl)\n",
        "DELETED  configmaps default/gone\n",
        "1 came, 1 changed, 1 went\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(cluster.get(&a)["data"]["k"], "0");
    assert_eq!(cluster.get(&format!("{CONFIGMAPS}/b"))["code"], 404);
    assert_eq!(cluster.branches(), 0, "the branch is deleted");
    assert_eq!(std::fs::read_dir(cluster.temporary.path()).unwrap().count(), 0);
    let ran = cluster.run(&["try", "--apply", "--yes", "--", "sh", "-c", &script(&requests, "")]);
    assert_eq!(ran.status.code(), Some(0), "{} {}", text(&ran.stdout), text(&ran.stderr));
    assert_eq!(cluster.get(&a)["data"]["k"], "1");
    assert_eq!(cluster.get(&format!("{CONFIGMAPS}/b"))["data"]["k"], "new");
    assert_eq!(cluster.get(&gone)["code"], 404);
}

#[test]
fn a_trial_with_definitions_that_the_cluster_lacks() {
    let cluster = Cluster::start();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    let folder = cluster.dir.path().join("crds");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("widgets.json"), definition.to_string()).unwrap();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}});
    let requests = [("POST", widgets, widget)];
    let crds = format!("--crds={}", folder.display());
    let ran = cluster.run(&["try", &crds, "--", "sh", "-c", &script(&requests, "")]);
    let shown = text(&ran.stdout);
    assert!(ran.status.success(), "{shown} {}", text(&ran.stderr));
    for line in [
        "ADDED    customresourcedefinitions.apiextensions.k8s.io widgets.example.com",
        "ADDED    widgets.example.com default/w",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(cluster.get(definitions)["items"], json!([]), "the cluster lacks it still");
    std::fs::write(
        folder.join("widgets.json"),
        definition.to_string().replace("\"kind\":\"Widget\"", "\"kind\":\"\""),
    )
    .unwrap();
    let ran = cluster.run(&["try", &crds, "--", "true"]);
    assert!(!ran.status.success() && text(&ran.stderr).contains("spec.names.kind"), "{}", text(&ran.stderr));
    let ran = cluster.run(&["try", "--crds=/nonexistent", "--", "true"]);
    assert!(!ran.status.success() && text(&ran.stderr).contains("No such file"), "{}", text(&ran.stderr));
    assert_eq!(cluster.branches(), 0);
}

#[test]
fn kubectl_finds_the_commands_by_the_name_of_its_plugin() {
    let cluster = Cluster::start();
    let plugin = cluster.dir.path().join("kubectl-rowplane");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rowplane"), &plugin).unwrap();
    let run = |arguments: &[&str]| {
        let ran =
            Command::new(&plugin).args(arguments).env("KUBECONFIG", cluster.kubeconfig()).output().unwrap();
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        text(&ran.stdout).to_owned()
    };
    assert!(run(&["branch", "create", "b"]).starts_with("branch b of revision "));
    assert!(run(&["branch", "list"]).contains("\nb "));
    assert_eq!(run(&["branch", "delete", "b"]), "branch b is deleted\n");
}

#[test]
fn a_trial_ends_a_command_that_goes_on() {
    let cluster = Cluster::start();
    let begun = std::time::Instant::now();
    let file = cluster.dir.path().join("pid");
    let goes_on = format!("sleep 3600 & echo $! > {}; wait", file.display());
    for limit in ["--for=1s", "--until=quiet"] {
        let ran = cluster.run(&["try", limit, "--", "sh", "-c", &goes_on]);
        assert_eq!(ran.status.code(), Some(0), "{limit}: {}", text(&ran.stderr));
        let started = std::fs::read_to_string(&file).unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/status", started.trim())).unwrap_or_default();
        assert!(
            state.is_empty() || state.contains("State:\tZ"),
            "{limit}: what it has started ends, too: {state}"
        );
    }
    assert!(begun.elapsed().as_secs() < 3600);
    assert_eq!(cluster.branches(), 0);
    let ran = cluster.run(&["try", "--", "/nonexistent/program"]);
    assert_eq!(ran.status.code(), Some(127));
    assert_eq!(cluster.branches(), 0);
}

#[test]
fn a_branch_of_a_past_time() {
    let cluster = Cluster::start();
    let made = cluster.send("POST", CONFIGMAPS, config_map("a", "0"));
    let then = made["metadata"]["resourceVersion"].as_str().unwrap();
    cluster.send("DELETE", &format!("{CONFIGMAPS}/a"), json!(null));
    let told = cluster.branch(&["create", "b", "--at", &format!("rv-{then}")]);
    assert!(told.starts_with(&format!("branch b of revision {then}\n")), "{told}");
    assert_eq!(cluster.get(&format!("/branches/b{CONFIGMAPS}/a"))["data"]["k"], "0");
    cluster.branch(&["create", "c", "--at", "-0s"]);
    for (at, why) in
        [("-1h", "is not kept"), ("2999-01-01T00:00:00Z", "is in the future"), ("noon", "is no time")]
    {
        let ran = cluster.run(&["branch", "create", "d", "--at", at]);
        assert!(!ran.status.success() && text(&ran.stderr).contains(why), "{at}: {}", text(&ran.stderr));
    }
    assert_eq!(cluster.branches(), 2);
}

#[test]
fn what_has_changed_meanwhile_is_left() {
    let cluster = Cluster::start();
    for name in ["a", "c"] {
        cluster.send("POST", CONFIGMAPS, config_map(name, "0"));
    }
    let kubeconfig = cluster.dir.path().join("b.kubeconfig");
    let made = cluster.branch(&["create", "b", "-w", kubeconfig.to_str().unwrap()]);
    assert!(
        made.starts_with("branch b of revision ") && made.contains("admission webhooks: not called"),
        "{made}"
    );
    assert!(cluster.branch(&["list"]).contains("\nb "), "{}", cluster.branch(&["list"]));
    let written = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(written.contains(&format!("server: {}/branches/b\n", cluster.server.url)), "{written}");
    assert_eq!(cluster.branch(&["kubeconfig", "b"]), written);
    let (a, c) = (format!("{CONFIGMAPS}/a"), format!("{CONFIGMAPS}/c"));
    for path in [&a, &c] {
        cluster.send("PATCH", &format!("/branches/b{path}"), json!({"data": {"k": "branch"}}));
    }
    cluster.send("PATCH", &a, json!({"data": {"k": "meanwhile"}}));
    let diff = cluster.branch(&["diff", "b"]);
    assert!(diff.contains("\"0\" -> \"branch\"") && !diff.contains("meanwhile"), "{diff}");
    let ran = cluster.run(&["branch", "apply", "b", "--yes"]);
    let told = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert!(told.contains("conflict  configmaps default/a: it has changed meanwhile"), "{told}");
    assert!(told.contains("applied   configmaps default/c"), "{told}");
    assert_eq!(
        (&cluster.get(&a)["data"]["k"], &cluster.get(&c)["data"]["k"]),
        (&json!("meanwhile"), &json!("branch"))
    );
    let ran = cluster.run(&["branch", "apply", "b", "--yes"]);
    assert!(text(&ran.stdout).contains("unchanged configmaps default/c"), "{}", text(&ran.stdout));
    let ran = cluster.run(&["branch", "apply", "b"]);
    assert!(text(&ran.stderr).contains("nobody can be asked"), "{}", text(&ran.stderr));
    cluster.branch(&["delete", "b"]);
    let ran = cluster.run(&["branch", "diff", "b"]);
    assert_eq!(
        (ran.status.code(), text(&ran.stderr)),
        (Some(1), "rowplane: branches.rowplane.dev \"b\" not found\n")
    );
}
