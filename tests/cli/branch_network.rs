//! The network of a fork: in a namespace whose only way out is a device that counts.

use std::path::Path;
use std::process::Command;

use crate::optional;

#[test]
fn no_byte_leaves_a_fork() {
    let possible =
        Command::new("unshare").args(["-Urn", "ip", "link", "add", "out", "type", "veth"]).output();
    if !possible.as_ref().is_ok_and(|tried| tried.status.success()) {
        return optional::note(
            "what leaves a fork: no network namespace with a device of its own can be had",
        );
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/network");
    let mut command = Command::new("unshare");
    command.args(["-Urn", "sh"]).arg(scripts.join("run.sh")).arg(scripts.join("fork.sh"));
    let ran = command.env("ROWPLANE", env!("CARGO_BIN_EXE_rowplane")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said} {}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("\nthe fork has sent 0 bytes\n"), "{said}");
    // The device counts what leaves the server otherwise.
    let parent = said.lines().find_map(|line| line.strip_prefix("its parent has sent "));
    assert!(parent.is_some_and(|bytes| !bytes.starts_with("0 ")), "{said}");
    // All requests were made, and what would have left was refused.
    for line in [
        "201 POST /branches/b/api/v1/namespaces/default/configmaps\n",
        "500 GET /branches/b/apis/example.com/v2/namespaces/default/widgets\n",
        "500 GET /branches/b/api/v1/namespaces/default/pods/p/log\n",
        "503 GET /branches/b/api/v1/nodes/n/proxy/metrics\n",
        "503 GET /branches/b/apis/x.example.com/v1\n",
        "200 GET /rowplane/v1/branches/b/quiet?for=500ms\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
