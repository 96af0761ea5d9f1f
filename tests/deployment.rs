//! The means to deploy rowplane in this repository, and whether program and documentation agree with them: the image
//! and the compose file. Needs no container engine.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser as _;
use rowplane::cli::args::{self, Cli};
use rowplane::server::config::Config;
use rowplane::server::datastore::Datastore;
use serde_json::Value;

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

        hostnames.push(config.identity.unwrap().hostname_override.unwrap());
        let secret = format!("password:{}:ro", Path::new(password).parent().unwrap().display());
        assert_eq!(texts(&service["volumes"]), [format!("./rowplane-compose:{data_dir}"), secret]);
        assert_eq!(texts(&service["security_opt"]), ["no-new-privileges:true"]);
        assert_eq!(config.https.unwrap().address.port(), 6443);
        assert!(service["ports"].is_null(), "the one address is that of the proxy");

        let grace = service["stop_grace_period"].as_str().unwrap().trim_end_matches('s');
        let patience = config.shutdown_delay + config.shutdown_grace;
        assert!(grace.parse::<u64>().unwrap() > patience.as_secs());
        // The proxy looks twice a second.
        assert!(config.shutdown_delay.as_secs() >= 1);
        let shown = &service["environment"]["ROWPLANE_KUBECONFIG_SHOWN_AS"];
        assert_eq!(shown, "${PWD:-.}/rowplane-compose/admin.kubeconfig");
    }
    // The kubeconfig contains the port inside the container.
    let address = &compose["services"]["address"];
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
    let from = format!("FROM rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(file("Dockerfile").starts_with(&from));
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

/// The entrypoint of the image, with a program in rowplane's place that prints its user.
struct Entrypoint {
    dir: tempfile::TempDir,
}

impl Entrypoint {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (bin, data) = (dir.path().join("bin"), dir.path().join("data"));
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("state.db"), "of an earlier image").unwrap();
        let rowplane = bin.join("rowplane");
        let script = "#!/bin/sh\necho \"$(id -u):$(id -g) $(sed -n 's/NoNewPrivs:[[:space:]]*//p' /proc/self/status) $*\"\n";
        std::fs::write(&rowplane, script).unwrap();
        for path in [dir.path(), &bin, &rowplane] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn run(&self) -> String {
        let path = format!("{}:{}", self.dir.path().join("bin").display(), std::env::var("PATH").unwrap());
        let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("docker/entrypoint"))
            .args(["serve", "--datastore=a b"])
            .env("PATH", path)
            .env("ROWPLANE_DATA_DIR", self.data())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

fn is_root() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    rustix::process::geteuid().is_root() && map.split_whitespace().nth(1) == Some("0")
}

/// root switches to the owner of the data directory; other users stay as they are. Nobody gains rights.
#[test]
fn the_image_runs_as_the_owner_of_its_data_directory() {
    let entrypoint = Entrypoint::new();
    if is_root() {
        std::os::unix::fs::chown(entrypoint.data(), Some(12345), Some(54321)).unwrap();
    }
    let owner = std::fs::metadata(entrypoint.data()).unwrap();
    let expected = format!("{}:{} 1 serve --datastore=a b\n", owner.uid(), owner.gid());
    assert_eq!(entrypoint.run(), expected);
}

/// A directory that belongs to root is given to the image's account, with its content.
#[test]
fn the_image_never_runs_as_root() {
    let script = file("docker/entrypoint");
    let account: u32 =
        script.lines().find_map(|line| line.strip_prefix("account=")).unwrap().parse().unwrap();
    assert!(file("Dockerfile").contains(&format!("useradd --uid {account} --gid {account} ")));
    assert!(
        file("Dockerfile")
            .contains(&format!("install -d -m 0700 -o {account} -g {account} /var/lib/rowplane\n"))
    );
    if !is_root() {
        return;
    }
    let entrypoint = Entrypoint::new();
    let expected = format!("{account}:{account} 1 serve --datastore=a b\n");
    assert_eq!(entrypoint.run(), expected);
    assert_eq!(std::fs::metadata(entrypoint.data().join("state.db")).unwrap().uid(), account);
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
