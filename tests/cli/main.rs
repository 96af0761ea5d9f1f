//! The program as an operator sees it: its output, its refusals, and how it ends.

mod branch;
mod branch_network;
mod certs;
mod console;
mod doctor;
mod etcd;
mod first_errors;
mod healthcheck;
mod installers;
mod kube_apiserver;
mod output;
mod pki;
mod serve;
mod sql;
mod test_command;
mod up;

#[path = "../support/optional.rs"]
#[expect(dead_code, reason = "other tests have programs that may be missing")]
mod optional;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn rowplane(data_dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.arg("--data-dir").arg(data_dir).args(arguments);
    command
}

fn refused(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = rowplane(data_dir, arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// A server that has printed its banner. Killed when it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data_dir: &Path) -> Self {
        Self::of(&mut rowplane(data_dir, &["--secure-port=0"]))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
            if let Some(rest) = line.trim().strip_prefix("url ") {
                rest.trim().clone_into(&mut url);
            }
            if line.starts_with("export KUBECONFIG=") {
                return Self { child, url };
            }
        }
        panic!("the server ended with {} before it was ready", child.wait().unwrap());
    }

    fn port(&self) -> &str {
        self.url.rsplit_once(':').unwrap().1
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
