//! `rowplane up` with stand-ins for upstream's programs: what they are given, their restarts, and how all of it ends.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROGRAMS: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// Programs that write down their arguments and process ids. They end at once while the file NAME.dies is there.
fn components(version: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    for name in PROGRAMS {
        let path = dir.path().join(name);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" != --version ] || {{ echo Kubernetes {version}; exit; }}\n\
             printf '%s\\n' \"$@\" >$0.args; echo $$ >>$0.ids; echo started\n\
             [ ! -e $0.dies ] || {{ echo 'the last word' >&2; exit 3; }}\nsleep 100000 & wait\n"
        );
        // Written by another process: a file that a child of another test's thread has inherited open cannot be run.
        let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
        let written = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status();
        assert!(written.unwrap().success());
    }
    dir
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn up(data_dir: &Path, components: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.arg("up").arg("--components").arg(components).arg("--data-dir").arg(data_dir);
    command.arg("--bind-address=127.0.0.1").arg(format!("--secure-port={}", free_port()));
    for name in PROGRAMS {
        command.arg(format!("--{name}-arg=secure-port={}", free_port()));
    }
    command.args(flags);
    command
}

/// A running `rowplane up` that has printed its message.
struct Up {
    child: Child,
    message: Vec<String>,
    errors: Lines<BufReader<ChildStderr>>,
    _output: Lines<BufReader<ChildStdout>>,
}

impl Up {
    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut message = Vec::new();
        while !message.last().is_some_and(|line: &String| line.starts_with("  kubeadm join ")) {
            match output.next() {
                Some(line) => message.push(line.unwrap()),
                None => panic!("{}", errors.map(Result::unwrap).collect::<Vec<_>>().join("\n")),
            }
        }
        Self { child, message, errors, _output: output }
    }

    fn line(&self, start: &str) -> &str {
        self.message.iter().find_map(|line| line.trim().strip_prefix(start)).unwrap().trim()
    }

    /// The next line on standard error about a program.
    fn error(&mut self, program: &str) -> String {
        let start = format!("rowplane: {program} ");
        self.errors.by_ref().map(Result::unwrap).find(|line| line.starts_with(&start)).unwrap()
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        signal(self.child.id(), name);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(id: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &id.to_string()]).status().unwrap().success());
}

/// The processes whose parent is this one.
fn children(id: u32) -> Vec<u32> {
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |child: &u32| {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        status.lines().any(|line| line.split_whitespace().eq(["PPid:", &id.to_string()]))
    };
    ids.filter(is_child).collect()
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// Waits until none of them is running.
fn wait_for_end(ids: &[u32]) {
    wait_until(|| ids.iter().all(|id| !Path::new(&format!("/proc/{id}/exe")).exists()));
}

/// The lines of a file that a stand-in writes, once there are so many.
fn lines(path: &Path, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    wait_until(|| read().len() >= count);
    read()
}

fn get(up: &Up, ca: &Path, path: &str, token: Option<&str>) -> (String, String) {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--noproxy", "*", "-w", "\n%{http_code}", "--cacert"]).arg(ca);
    if let Some(token) = token {
        curl.arg("-H").arg(format!("Authorization: Bearer {token}"));
    }
    let output = curl.arg(format!("{}{path}", up.line("url "))).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap_or_else(|| panic!("{:?}", output.stderr));
    (status.to_owned(), body.to_owned())
}

/// The components have users and files of their own, a node finds what `kubeadm join` reads, and nothing is left behind.
#[test]
fn a_cluster_comes_up_and_leaves_nothing_behind() {
    let (dir, programs) = (TempDir::new().unwrap(), components("v1.37.2"));
    let kubeconfigs = || {
        ["controller-manager.conf", "scheduler.conf"]
            .map(|name| fs::read_to_string(dir.path().join(name)).unwrap())
    };
    let flags = ["--pod-network-cidr", "10.2.0.0/16", "--kube-scheduler-arg=v=4", "-v", "2"];
    let mut first = Up::of(&mut up(dir.path(), programs.path(), &flags));
    let arguments = lines(&programs.path().join("kube-controller-manager.args"), 14);
    for flag in [
        format!("--kubeconfig={}/controller-manager.conf", dir.path().display()),
        format!("--service-account-private-key-file={}/pki/sa.key", dir.path().display()),
        "--use-service-account-credentials=true".to_owned(),
        "--controllers=*,bootstrapsigner,tokencleaner".to_owned(),
        "--cluster-cidr=10.2.0.0/16".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/12".to_owned(),
    ] {
        assert!(arguments.contains(&flag), "{flag}: {arguments:?}");
    }
    let arguments = lines(&programs.path().join("kube-scheduler.args"), 6);
    assert_eq!(arguments.last().unwrap(), "--v=4");
    assert!(dir.path().join("pki/sa.key").exists());

    let join = first.line("kubeadm join ").to_owned();
    let join: Vec<&str> = join.split_whitespace().collect();
    let [endpoint, "--token", token, "--discovery-token-ca-cert-hash", pin] = join[..] else {
        panic!("{join:?}")
    };
    assert!(first.line("url ").ends_with(endpoint) && pin.len() == "sha256:".len() + 64, "{join:?}");
    let ca = dir.path().join("pki/ca.crt");
    let (status, info) = get(&first, &ca, "/api/v1/namespaces/kube-public/configmaps/cluster-info", None);
    assert!(status == "200" && info.contains(&format!("https://{endpoint}")), "{status} {info}");
    let subnet = r#"serviceSubnet: \"10.96.0.0/12\", podSubnet: \"10.2.0.0/16\""#;
    for (name, part) in [("kubeadm-config", subnet), ("kubelet-config", r#"clusterDNS: [\"10.96.0.10\"]"#)] {
        let path = format!("/api/v1/namespaces/kube-system/configmaps/{name}");
        let (status, text) = get(&first, &ca, &path, Some(token));
        assert!(status == "200" && text.contains(part), "{name}: {status} {text}");
        assert_eq!(get(&first, &ca, &path, None).0, "403");
    }
    assert_eq!(
        get(&first, &ca, "/api/v1/nodes/a", Some(token)).0,
        "404",
        "a node may ask whether its name is taken"
    );
    assert_eq!(get(&first, &ca, "/api/v1/nodes", Some(token)).0, "403");

    let ids = children(first.child.id());
    assert_eq!(ids.len(), 3);
    let below: Vec<u32> = ids.iter().flat_map(|id| children(*id)).collect();
    let made = kubeconfigs();
    assert_eq!(first.signal("INT"), Some(0));
    wait_for_end(&[ids, below].concat());
    let port = endpoint.rsplit_once(':').unwrap().1.to_owned();
    for name in ["rowplane", "kube-controller-manager", "kube-scheduler"] {
        let log = fs::read_to_string(dir.path().join(format!("logs/{name}.log"))).unwrap();
        assert!(log.contains(if name == "rowplane" { "ready" } else { "started" }), "{log}");
    }

    let mut second = Up::of(&mut up(dir.path(), programs.path(), &[]));
    lines(&programs.path().join("kube-controller-manager.ids"), 2);
    lines(&programs.path().join("kube-scheduler.ids"), 2);
    let other = second.line("url ").rsplit_once(':').unwrap().1.to_owned();
    // The order of the fields is not kept.
    let words = |texts: [String; 2]| {
        texts.map(|text| {
            text.split_whitespace().map(str::to_owned).filter(|word| word != "-").collect::<BTreeSet<_>>()
        })
    };
    assert_eq!(
        words(kubeconfigs()),
        words(made.map(|text| text.replace(&format!(":{port}\n"), &format!(":{other}\n"))))
    );
    assert_eq!(second.signal("TERM"), Some(0));
}

#[test]
fn a_program_that_ends_is_started_again_after_a_pause_that_grows() {
    let (dir, programs) = (TempDir::new().unwrap(), components("v1.37.2"));
    fs::write(programs.path().join("kube-scheduler.dies"), "").unwrap();
    let mut up = Up::of(&mut up(dir.path(), programs.path(), &["--datastore=memory:"]));
    for pause in ["1s", "2s"] {
        let told = up.error("kube-scheduler");
        let expected = format!("ended (exit status: 3): the last word; it is started again in {pause}");
        assert!(told.ends_with(&expected), "{told}");
    }
    fs::remove_file(programs.path().join("kube-scheduler.dies")).unwrap();
    let ids = lines(&programs.path().join("kube-scheduler.ids"), 3);
    assert_eq!(
        lines(&programs.path().join("kube-controller-manager.ids"), 1).len(),
        1,
        "the other one goes on"
    );

    let components: Vec<u32> = [&ids[2], &lines(&programs.path().join("kube-controller-manager.ids"), 1)[0]]
        .map(|id| id.parse().unwrap())
        .to_vec();
    let server: Vec<u32> =
        children(up.child.id()).into_iter().filter(|id| !components.contains(id)).collect();
    assert_eq!(server.len(), 1);
    signal(server[0], "KILL");
    let told = up.error("rowplane");
    assert!(told.contains("ended (signal: 9 (SIGKILL))") && told.ends_with("again in 1s"), "{told}");
    // The store was in memory: what nodes need is made again.
    let (ca, path) =
        (dir.path().join("pki/ca.crt"), "/api/v1/namespaces/kube-system/configmaps/kubelet-config");
    let token = up.line("kubeadm join ").split_whitespace().nth(2).unwrap().to_owned();
    let mut curl = Command::new("curl");
    curl.args(["-sf", "--noproxy", "*", "-H", &format!("Authorization: Bearer {token}"), "--cacert"]).arg(ca);
    curl.arg(format!("{}{path}", up.line("url "))).stdout(Stdio::null());
    wait_until(|| curl.status().unwrap().success());
}

/// A program that nobody can catch a signal for takes its children with it.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_when_it_is_killed() {
    let (dir, programs) = (TempDir::new().unwrap(), components("v1.37.2"));
    let mut up = Up::of(&mut up(dir.path(), programs.path(), &[]));
    lines(&programs.path().join("kube-controller-manager.ids"), 1);
    lines(&programs.path().join("kube-scheduler.ids"), 1);
    let ids = children(up.child.id());
    assert_eq!(ids.len(), 3);
    up.signal("KILL");
    wait_for_end(&ids);
}

#[test]
fn what_cannot_work_is_one_line_before_anything_is_started() {
    let (dir, programs, empty) = (TempDir::new().unwrap(), components("v1.37.2"), TempDir::new().unwrap());
    let data_dir = dir.path().join("data");
    let (old, taken) = (components("v1.36.9"), TcpListener::bind("127.0.0.1:0").unwrap());
    let mute = components("");
    let port = taken.local_addr().unwrap().port().to_string();
    let path = |dir: &TempDir| dir.path().to_owned();
    let urls = "https://dl.k8s.io/v1.37.2/bin/linux/";
    for (programs, flags, parts) in [
        (dir.path().join("nothing"), vec![], ["--components: ", "nothing is no directory"]),
        (path(&empty), vec![], ["kube-controller-manager and kube-scheduler are not in ", urls]),
        (path(&old), vec![], ["kube-controller-manager is of v1.36.9", "server of v1.37"]),
        (
            path(&mute),
            vec![],
            ["kube-controller-manager does not say its version", "no kube-controller-manager of"],
        ),
        (path(&programs), vec!["--secure-port=".to_owned() + &port], [&port, "is already in use"]),
        (
            path(&programs),
            vec![format!("--kube-scheduler-arg=secure-port={port}")],
            ["which is kube-scheduler's", "--kube-scheduler-arg=secure-port=PORT"],
        ),
        (path(&programs), vec!["--secure-port=0".to_owned()], ["--secure-port=0", "at each start"]),
        (path(&programs), vec!["--pod-network-cidr=x".to_owned()], ["--pod-network-cidr", "is no network"]),
    ] {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut command = up(&data_dir, &programs, &[]);
        if flags.first().is_some_and(|flag| flag.starts_with("--secure-port")) {
            command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
            command.args(["up", "--bind-address=127.0.0.1", "--components"]).arg(&programs);
            command.arg("--data-dir").arg(&data_dir);
        }
        let output = command.args(flags).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.lines().count() == 1, "{text}");
        assert!(
            text.starts_with("rowplane: ") && parts.iter().all(|part| text.contains(part)),
            "{parts:?}: {text}"
        );
        assert!(!data_dir.exists(), "{text}");
    }
}

/// A server that ends before it was ready once says why.
#[test]
fn the_server_s_refusal_is_shown() {
    let (dir, programs) = (TempDir::new().unwrap(), components("v1.37.2"));
    fs::create_dir(dir.path().join("pki")).unwrap();
    fs::write(dir.path().join("pki/sa.key"), "garbage").unwrap();
    let output = up(dir.path(), programs.path(), &[]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("pki/sa.key is not a private key"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(!programs.path().join("kube-scheduler.ids").exists());
}

/// The users are those that upstream's roles are for.
#[test]
fn components_are_no_masters() {
    let (dir, programs) = (TempDir::new().unwrap(), components("v1.37.2"));
    let _up = Up::of(&mut up(dir.path(), programs.path(), &["--datastore=memory:"]));
    lines(&programs.path().join("kube-scheduler.ids"), 1);
    lines(&programs.path().join("kube-controller-manager.ids"), 1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let listed =
        command.args(["certs", "list", "-o", "json", "--data-dir"]).arg(dir.path()).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let subject = |name: &str| {
        let one = listed.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        one["subject"].as_str().unwrap().to_owned()
    };
    assert_eq!(subject("controller-manager"), "CN=system:kube-controller-manager");
    assert_eq!(subject("scheduler"), "CN=system:kube-scheduler");
    assert_eq!(subject("apiserver-kubelet-client"), "CN=kube-apiserver-kubelet-client");
}
