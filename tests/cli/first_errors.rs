//! The errors of the first five minutes: each is made, and its one line names the cause and the cure.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::{Server, refused, rowplane};

/// The last line of a refusal; warnings may come before.
fn told(dir: &Path, arguments: &[&str]) -> String {
    let (code, text) = refused(dir, arguments);
    assert!(matches!(code, Some(1 | 2)), "{code:?} {text}");
    text.lines().last().unwrap().to_owned()
}

/// Whether this process may write everywhere, so that a file's mode keeps nobody out.
fn is_root() -> bool {
    String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap().trim() == "0"
}

#[test]
fn a_port_that_is_taken() {
    let dir = TempDir::new().unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    assert_eq!(
        told(dir.path(), &["--secure-port", &taken.port().to_string()]),
        format!(
            "rowplane: {taken} is already in use; end the program there, or choose another port with --secure-port (0 takes a \
             free one)"
        )
    );
    let line = told(dir.path(), &["--secure-port=0", "--bind-address=203.0.113.7"]);
    assert!(line.contains("no interface of this host has the address; --bind-address=0.0.0.0"), "{line}");
}

#[test]
fn a_second_server_on_one_store() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let _server = Server::start(dir.path());
    let datastore = format!("--datastore=sqlite:{}/state.db", dir.path().display());
    for line in [told(dir.path(), &["--secure-port=0"]), told(other.path(), &["--secure-port=0", &datastore])]
    {
        assert!(
            line.contains(
                "is in use by another server; stop that one, or give this one a --data-dir of its own"
            ),
            "{line}"
        );
    }
}

#[test]
fn a_database_that_is_not_there() {
    let dir = TempDir::new().unwrap();
    let line = told(dir.path(), &["--datastore=postgres://u@127.0.0.1:1/d", "--secure-port=0"]);
    assert!(line.contains("Connection refused"), "{line}");
    assert!(
        line.ends_with("; check that PostgreSQL runs there, and the host and port in --datastore"),
        "{line}"
    );
    let line = told(dir.path(), &["--datastore=sqlite:/nonexistent/state.db", "--secure-port=0"]);
    assert!(line.contains("/nonexistent/state.db cannot be opened: No such file"), "{line}");
    let cluster = std::env::var("ROWPLANE_TEST_POSTGRES").expect("./test starts a cluster");
    let (cluster, _) = cluster.rsplit_once('/').unwrap();
    let line = told(dir.path(), &["--secure-port=0", &format!("--datastore={cluster}/missing")]);
    assert!(line.contains("database \"missing\" does not exist"), "{line}");
    assert!(line.ends_with("; create it with createdb, or correct its name in --datastore"), "{line}");
    let stranger = cluster.replacen("postgres://", "postgres://stranger@", 1).replace("rowplane@", "");
    let line = told(dir.path(), &["--secure-port=0", &format!("--datastore={stranger}/postgres")]);
    assert!(line.contains("; check the user in --datastore, its password"), "{line}");
}

#[test]
fn databases_that_are_not_supported() {
    let dir = TempDir::new().unwrap();
    for url in ["mysql://u:secret@h/d", "mariadb://u:secret@h/d"] {
        let line = told(dir.path(), &["--datastore", url]);
        assert_eq!(
            line,
            "rowplane: invalid --datastore: MySQL and MariaDB are not supported; use sqlite:, postgres: or memory:"
        );
    }
    let line = told(dir.path(), &["--datastore=http://127.0.0.1:2379"]);
    assert!(line.contains("an address of an etcd; rowplane keeps its state itself"), "{line}");
}

#[test]
fn a_directory_that_may_not_be_written() {
    let (dir, program) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    for (path, mode) in [(dir.path(), 0o755), (program.path(), 0o755), (&closed, 0o555)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = rowplane(&closed, &["--secure-port=0"]);
    if is_root() {
        // The program may lie where nobody else gets to.
        let copy = program.path().join("rowplane");
        std::fs::copy(env!("CARGO_BIN_EXE_rowplane"), &copy).unwrap();
        command = Command::new(copy);
        command.arg("--data-dir").arg(&closed).arg("--secure-port=0").uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("Permission denied"), "{text}");
    assert!(
        text.contains("; run as the user who owns the directory, or choose another with --data-dir"),
        "{text}"
    );
}

#[test]
fn a_flag_that_is_misspelt() {
    let dir = TempDir::new().unwrap();
    let line = told(dir.path(), &["--secure-prot=1"]);
    assert_eq!(line, "rowplane: unexpected argument '--secure-prot' found; did you mean '--secure-port'?");
    let output = Command::new(env!("CARGO_BIN_EXE_rowplane")).arg("bakcup").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "rowplane: unrecognized subcommand 'bakcup'; did you mean 'backup'?\n");
}

/// A command that looks at a server needs one of its own, or a kubeconfig that can be read.
#[test]
fn a_wrong_kubeconfig() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("admin.kubeconfig"), "current-context: nowhere\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let output = command.arg("healthcheck").arg("--data-dir").arg(dir.path()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("admin.kubeconfig has no context \"nowhere\"") && text.lines().count() == 1,
        "{text}"
    );
}

/// `rowplane -h` fills one screen; `--help` has all flags.
#[test]
fn help_is_short_until_more_is_asked_for() {
    let help = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_rowplane")).args(flags).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help(&["-h"]).lines().count() <= 30);
    let (short, long) = (help(&["serve", "-h"]), help(&["serve", "--help"]));
    assert!(short.contains("--data-dir") && !short.contains("--audit-log-maxage"), "{short}");
    for heading in ["Secure serving flags:", "Authentication flags:", "Auditing flags:", "Etcd flags:"] {
        assert!(long.contains(&format!("\n{heading}\n")), "{heading}");
    }
    assert!(long.contains("--audit-log-maxage") && help(&["test", "--help"]).contains("--crds"));
}
