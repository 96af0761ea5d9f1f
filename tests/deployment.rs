//! The means to deploy and release rowplane in this repository, and whether program and documentation agree with them: the
//! image, the compose file, and what `release/test` does not need a release for. Needs no container engine.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clap::Parser as _;
use rowplane::cli::args::{self, Cli};
use rowplane::server::config::Config;
use rowplane::server::datastore::Datastore;
use serde_json::Value;
use sha2::Digest as _;

fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn compose() -> Value {
    serde_saphyr::from_str(&file("docker-compose.yml")).unwrap()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// The configuration that results from a service's flags.
fn config_of(service: &Value) -> Config {
    let arguments = ["rowplane"].into_iter().chain(texts(&service["command"]));
    let args::Command::Serve(flags) = Cli::try_parse_from(arguments).unwrap().command() else {
        panic!("{service} does not serve");
    };
    flags.into_config(args::Defaults::Own).unwrap().server
}

/// The values of `ENV` in the Dockerfile.
fn image_environment() -> Vec<(String, String)> {
    let dockerfile = file("Dockerfile");
    let lines = dockerfile.lines().filter_map(|line| line.strip_prefix("ENV "));
    let pairs = lines.flat_map(str::split_whitespace).map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn replicas_of_the_compose_file_are_two_on_one_database_and_one_directory() {
    let compose = compose();
    let (_, data_dir) =
        image_environment().into_iter().find(|(name, _)| name == "ROWPLANE_DATA_DIR").unwrap();
    let mut hostnames = Vec::new();
    for name in ["a", "b"] {
        let service = &compose["services"][name];
        let config = config_of(service);
        let postgres = &compose["services"]["postgres"]["environment"];
        // The image names the database after its user.
        let user = postgres["POSTGRES_USER"].as_str().unwrap();
        let password = postgres["POSTGRES_PASSWORD_FILE"].as_str().unwrap();
        let Datastore::Postgres(address) = config.datastore else { panic!("{service} is not on PostgreSQL") };
        assert_eq!(address.url, format!("postgres://{user}@postgres/{user}?sslmode=disable"));
        assert_eq!(address.password_file.as_deref(), Some(Path::new(password)));

        // It would be a name in the certificate that they share, which each would issue again.
        assert_eq!(config.advertise_address, None);
        hostnames.push(config.identity.unwrap().hostname_override.unwrap());
        let secret = format!("password:{}:ro", Path::new(password).parent().unwrap().display());
        assert_eq!(texts(&service["volumes"]), [format!("./rowplane-compose:{data_dir}"), secret]);
        assert_eq!(texts(&service["security_opt"]), ["no-new-privileges:true"]);
        assert_eq!(config.https.unwrap().address.port(), 6443);
        assert!(service["ports"].is_null(), "the one address is that of the proxy");

        let grace = service["stop_grace_period"].as_str().unwrap().trim_end_matches('s');
        let patience = config.shutdown_delay + config.shutdown_grace;
        assert!(grace.parse::<u64>().unwrap() > patience.as_secs());
        assert_eq!(service["user"], compose["services"]["directory"]["command"][0]);
        // Never what somebody else has published under the image's name.
        assert_eq!(service["pull_policy"], "never");
        // The proxy looks twice a second.
        assert!(config.shutdown_delay.as_secs() >= 1);
        let shown = &service["environment"]["ROWPLANE_KUBECONFIG_SHOWN_AS"];
        assert_eq!(shown, "${PWD:-.}/rowplane-compose/admin.kubeconfig");
    }
    // The kubeconfig contains the port inside the container.
    let address = &compose["services"]["api"];
    assert_eq!(texts(&address["ports"]), ["127.0.0.1:6443:6443"]);
    let mounted = texts(&address["volumes"])[0].split(':').next().unwrap().to_owned();
    let proxy = file(&mounted);
    for line in ["bind :6443", "server a a:6443", "server b b:6443", "http-check send meth GET uri /readyz"] {
        assert!(proxy.contains(&format!("    {line}\n")), "{line}");
    }
    assert_eq!(hostnames, ["rowplane-a", "rowplane-b"]);
    assert_eq!(compose["services"]["a"]["hostname"], compose["services"]["b"]["hostname"]);
    assert!(file("docs/replicas.md").contains("export KUBECONFIG=$PWD/rowplane-compose/admin.kubeconfig\n"));
}

#[test]
fn volumes_of_the_compose_file_are_declared() {
    let compose = compose();
    let volumes = texts(&compose["services"]["postgres"]["volumes"]);
    let (name, _) = volumes[0].split_once(':').unwrap();
    assert!(compose["volumes"].as_object().unwrap().contains_key(name));
}

/// Programs beside the servers find what the servers and `certs issue` write.
#[test]
fn identities_of_the_compose_file_are_issued_by_it() {
    let compose = compose();
    let services = &compose["services"];
    let names = ["controller-manager", "scheduler"];
    for name in names {
        let flag = format!("--kubeconfig=/var/lib/rowplane/{name}.conf");
        assert!(texts(&services[name]["command"]).contains(&&*flag), "{name}");
    }
    let proxy: Value = serde_saphyr::from_str(&file("docker/node/kube-proxy.yaml")).unwrap();
    assert_eq!(proxy["clientConnection"]["kubeconfig"], "/run/join/kube-proxy.conf");
    for (service, wanted) in [("certificates", &[][..]), ("node-certificates", &["kube-proxy.conf"])] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let arguments = texts(&services[service]["command"]);
        let arguments = arguments.iter().map(|argument| argument.replace("/run/join", path));
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        assert!(command.args(arguments).arg("--data-dir").arg(path).status().unwrap().success(), "{service}");
        let all = ["controller-manager.conf", "scheduler.conf", "pki/apiserver-kubelet-client.key"];
        for name in if wanted.is_empty() { &all[..] } else { wanted } {
            assert!(dir.path().join(name).exists(), "{service} {name}");
        }
    }
}

/// Nodes join by a token that is made where it runs, once, and is the one that the API knows.
#[test]
fn the_token_of_the_compose_file_is_made_where_it_runs() {
    let maker = &compose()["services"]["token"];
    let dir = tempfile::tempdir().unwrap();
    let script =
        texts(&maker["command"])[0].replace("$$", "$").replace("/run/join", dir.path().to_str().unwrap());
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let make = || {
        let arguments = texts(&maker["entrypoint"]).into_iter().chain([&*script]).collect::<Vec<_>>();
        assert!(Command::new(arguments[0]).args(&arguments[1..]).status().unwrap().success());
        read("token").trim().to_owned()
    };
    let made = make();
    let (id, secret) = made.split_once('.').unwrap();
    assert_eq!((id.len(), secret.len()), (6, 16), "{made}");
    let known: Value = serde_saphyr::from_str(&read("token.yaml")).unwrap();
    assert_eq!(known["metadata"]["name"], format!("bootstrap-token-{id}"));
    assert_eq!(
        (&known["stringData"]["token-id"], &known["stringData"]["token-secret"]),
        (&id.into(), &secret.into())
    );
    assert_eq!(make(), made);
}

/// The repository does not contain the password. It is created only once, since PostgreSQL keeps the first one.
#[test]
fn the_password_of_the_compose_file_is_made_where_it_runs() {
    let compose = compose();
    let maker = &compose["services"]["password"];
    let script = texts(&maker["command"])[0];
    let dir = tempfile::tempdir().unwrap();
    let script = script.replace("/run/database", dir.path().to_str().unwrap());
    let password = || {
        let arguments = texts(&maker["entrypoint"]).into_iter().chain([&*script]).collect::<Vec<_>>();
        assert!(Command::new(arguments[0]).args(&arguments[1..]).status().unwrap().success());
        std::fs::read_to_string(dir.path().join("password")).unwrap()
    };
    let made = password();
    assert!(made.len() > 30 && made.lines().count() == 1, "{made:?}");
    assert_eq!(password(), made);
    assert!(!file("docker-compose.yml").contains("POSTGRES_PASSWORD:"));
}

#[test]
fn the_image_is_built_with_the_oldest_toolchain() {
    let from = format!("\nFROM rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(file("Dockerfile").contains(&from));
}

#[test]
fn the_program_knows_the_variables_of_the_image() {
    let help = Command::new(env!("CARGO_BIN_EXE_rowplane")).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let environment = image_environment();
    assert!(!environment.is_empty());
    let shown =
        compose()["services"]["a"]["environment"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for name in environment.into_iter().map(|(name, _)| name).chain(shown) {
        let flag =
            name.strip_prefix("ROWPLANE_").expect("a variable of rowplane").to_lowercase().replace('_', "-");
        assert!(help.contains(&format!("--{flag} <")), "{flag} is not in:\n{help}");
    }
}

/// The lines of a Dockerfile by which a container runs.
fn how_it_runs(path: &str) -> String {
    let text = file(path);
    text[text.find("\nUSER ").unwrap()..].to_owned()
}

/// The image from source and that of a release differ in how they are made, and in nothing else.
#[test]
fn both_images_run_as_nobody_and_are_asked_by_the_program() {
    let ways = how_it_runs("Dockerfile");
    assert_eq!(how_it_runs("docker/release.Dockerfile"), ways);
    for path in ["Dockerfile", "docker/release.Dockerfile"] {
        assert_eq!(file(path).matches("\nFROM scratch\n").count(), 1, "{path}");
        assert!(file(path).contains("data/ /var/lib/\n"), "{path}");
    }
    for line in [
        "USER 65532:65532",
        "ENTRYPOINT [\"/rowplane\"]",
        "HEALTHCHECK --interval=5s --timeout=5s --start-period=60s CMD [\"/rowplane\", \"healthcheck\"]",
    ] {
        assert!(ways.lines().any(|found| found == line), "{line} is not in:\n{ways}");
    }
}

/// The root of the image, of the program that is tested: its loader finds all that it needs, within that root alone.
#[test]
fn the_root_of_the_image_has_what_the_program_needs() {
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker/root");
    let made = Command::new(script).arg(env!("CARGO_BIN_EXE_rowplane")).arg(dir.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let root = dir.path().join("root");
    for name in ["rowplane", "kube-apiserver", "etcd"] {
        let link = std::fs::read_link(root.join("usr/local/bin").join(name)).unwrap();
        assert_eq!(link, Path::new("/rowplane"));
    }
    assert!(root.join("etc/ssl/certs/ca-certificates.crt").metadata().unwrap().len() > 100_000);
    let data = dir.path().join("data/rowplane").metadata().unwrap();
    assert_eq!(data.permissions().mode() & 0o777, 0o700);
    if rustix::process::geteuid().is_root() {
        let ran = Command::new("chroot").arg(&root).args(["/rowplane", "--version"]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        assert_eq!(
            String::from_utf8(ran.stdout).unwrap(),
            concat!("rowplane ", env!("CARGO_PKG_VERSION"), "\n")
        );
    }
}

/// A server whose service manager listens on `socket`, after its banner.
fn start_under_manager(dir: &Path, socket: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rowplane"))
        .args(["--datastore=memory:", "--secure-port=0", "--data-dir"])
        .arg(dir)
        .env("NOTIFY_SOCKET", socket)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut banner = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(banner.any(|line| line.starts_with("export KUBECONFIG=")), "{}", child.wait().unwrap());
    child
}

fn terminate(mut child: Child) -> Option<i32> {
    let id = child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    child.wait().unwrap().code()
}

/// The messages to systemd from a service of `Type=notify`, which the packages' unit is.
#[test]
fn a_service_manager_is_told_of_the_start_and_of_the_end() {
    assert!(file("release/linux/rowplane.service").contains("\nType=notify\n"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let server = start_under_manager(dir.path(), &path);
    let mut message = [0; 64];
    let length = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1\n");
    assert_eq!(terminate(server), Some(0));
    let length = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"STOPPING=1\n");
}

/// A manager that has gone away is nothing to end for.
#[test]
fn a_server_outlives_its_service_manager() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_under_manager(dir.path(), &dir.path().join("nothing"));
    assert_eq!(terminate(server), Some(0));
}

fn python(code: &str) -> String {
    let ran = Command::new("python3")
        .args(["-c", code])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("release"))
        .output()
        .expect("Python runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// `release/licences` refuses a dependency whose package brings no licence, and there is none today.
#[test]
fn every_dependency_that_is_linked_has_a_licence() {
    let missing = python(concat!(
        "import linked, tempfile, pathlib\n",
        "bare = linked.Crate('bare', '1.0.0', 'MIT', '', pathlib.Path(tempfile.mkdtemp()), 'checksum')\n",
        "crates = linked.crates('x86_64-unknown-linux-gnu')\n",
        "assert len(crates) > 200, len(crates)\n",
        "print(*(crate.name for crate in linked.without_licence([*crates, bare])))\n",
    ));
    assert_eq!(missing, "bare\n");
}

/// One number for whatever a release consists of.
#[test]
fn the_version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let chart: Value = serde_saphyr::from_str(&file("charts/rowplane/Chart.yaml")).unwrap();
    assert_eq!(chart["version"], version);
    assert_eq!(chart["appVersion"], version);
    let action: Value = serde_saphyr::from_str(&file(".github/actions/setup-rowplane/action.yml")).unwrap();
    assert_eq!(action["inputs"]["version"]["default"], version);
    assert_eq!(chart["home"], env!("CARGO_PKG_REPOSITORY"));
}

/// The index that setup-envtest reads, of a folder in which other files lie too.
#[test]
fn the_envtest_index_names_archives_as_controller_tools_does() {
    let dir = tempfile::tempdir().unwrap();
    let names =
        ["envtest-v1.37.0-linux-amd64.tar.gz", "envtest-v1.37.0-rc.1-linux-amd64.tar.gz", "install.sh"];
    for name in names {
        std::fs::write(dir.path().join(name), "content").unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("release/index");
    let made = Command::new(script).arg("https://example.test/v1").arg(dir.path()).output().unwrap();
    let index: Value = serde_saphyr::from_str(std::str::from_utf8(&made.stdout).unwrap()).unwrap();
    let hash = sha2::Sha512::digest(b"content").iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let archive =
        serde_json::json!({"hash": hash, "selfLink": format!("https://example.test/v1/{}", names[0])});
    assert_eq!(index, serde_json::json!({"releases": {"v1.37.0": {names[0]: archive}}}));
}

#[test]
fn the_picture_of_readme_is_that_of_the_measured_table() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures/draw");
    let checked = Command::new(script).arg("--check").output().expect("Python runs");
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn the_soak_would_find_growth() {
    let command = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/soak/run");
    let checked = Command::new(command).arg("--check").output().expect("Python runs");
    assert!(checked.status.success(), "{checked:?}");
}
