//! `rowplane sql`: statements from the command line and from standard input.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{Server, rowplane};

fn sql(kubeconfig: &Path, arguments: &[&str], input: Option<&str>) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.arg("sql").arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn statements_have_rows_or_one_line_of_error() {
    let dir = TempDir::new().unwrap();
    let _server = Server::of(&mut rowplane(dir.path(), &["--secure-port=0"]));
    let kubeconfig = dir.path().join("admin.kubeconfig");
    let query =
        "SELECT name, status_phase AS phase, 1 AS n FROM namespaces WHERE name LIKE 'kube-%' ORDER BY 1";
    let ask = |arguments: &[&str]| sql(&kubeconfig, arguments, None);
    let (code, out, err) = ask(&[query]);
    assert_eq!((code, &*err), (Some(0), ""));
    let table = "NAME             PHASE   N\n\
                 kube-node-lease  Active  1\n\
                 kube-public      Active  1\n\
                 kube-system      Active  1\n";
    assert_eq!(out, table);
    let (_, out, _) = ask(&["-o", "csv", query]);
    assert_eq!(out.lines().next(), Some("name,phase,n"));
    let (_, out, _) = ask(&["-o", "json", query]);
    assert_eq!(out.lines().next(), Some(r#"{"name":"kube-node-lease","phase":"Active","n":1}"#));
    // Statements of standard input, one after the other.
    let (code, out, _) = sql(&kubeconfig, &["-o", "csv"], Some("SELECT 1 AS a;\n-- ;\nSELECT ';' AS b;"));
    assert_eq!((code, &*out), (Some(0), "a\n1\nb\n;\n"));
    let (code, out, err) = ask(&["SELECT nam FROM pods"]);
    assert_eq!((code, &*out), (Some(1), ""));
    assert_eq!(err, "rowplane: no such column: nam (did you mean name?), at character 8\n");
    let (code, _, err) = ask(&["--as-of=2001-01-01T00:00:00Z", "SELECT name FROM pods"]);
    assert!(code == Some(1) && err.lines().count() == 1, "{err}");
    let (code, _, err) = ask(&["--as-of=-soon", "SELECT name FROM pods"]);
    assert!(code == Some(2) && err.contains("is no time"), "{err}");
    let (code, out, _) = ask(&["-n", "kube-system,default", "SELECT count(*) FROM pods"]);
    assert_eq!((code, &*out), (Some(0), "COUNT(*)\n       0\n"));
    let nobody = sql(&dir.path().join("no.kubeconfig"), &["SELECT 1"], None);
    assert!(nobody.0 == Some(2) && nobody.2.contains("no.kubeconfig"), "{nobody:?}");
}
