//! A Pod's view of a server: the files of its account where clients look for them, and its environment.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::optional;
use super::server::TestServer;

/// The account, as a user.
pub const USER: &str = "system:serviceaccount:t:default";
/// Its namespace.
pub const NAMESPACE: &str = "t";
const FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A Pod of the account `default`.
pub struct Pod {
    files: TempDir,
    port: u16,
}

impl Pod {
    /// The server has to fill namespaces. `None` if this machine lets nobody mount, which is told at the end of `./test`.
    pub async fn of(server: &TestServer) -> Option<Self> {
        let tried = inside("true", Path::new("/")).output().await.expect("run unshare");
        if !tried.status.success() {
            let why = String::from_utf8_lossy(&tried.stderr);
            optional::note(&format!(
                "in-cluster configuration: no mount namespace can be had: {}",
                why.trim()
            ));
            return None;
        }
        let account = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default/token");
        let answer = server.post(account, &json!({})).await.expect(201);
        let authority = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/kube-root-ca.crt");
        let authority = server.get(authority).await.ok();
        let files = tempfile::tempdir().expect("a directory");
        let (token, authority) = (&answer["status"]["token"], &authority["data"]["ca.crt"]);
        for (name, content) in [("token", token), ("ca.crt", authority), ("namespace", &json!(NAMESPACE))] {
            std::fs::write(files.path().join(name), content.as_str().expect("a text")).expect("write");
        }
        Some(Self { files, port: server.port() })
    }

    /// A program in the Pod.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = inside(program, self.files.path());
        command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
        command.env("KUBERNETES_SERVICE_PORT", self.port.to_string());
        command
    }
}

/// Runs a program with a `/var/run` of its own, in which the files are.
fn inside(program: impl AsRef<OsStr>, files: &Path) -> Command {
    let script = format!(
        "mount -t tmpfs none /var/run && mkdir -p {FILES} && {{ [ \"$0\" = / ] || cp \"$0\"/* {FILES}; }} && exec \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]).arg(files).arg(program);
    command
}
