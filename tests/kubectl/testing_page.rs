//! The commands of `docs/testing.md` that it says are run.

use std::os::unix::fs::symlink;
use std::path::Path;

use tokio::process::Command;

use crate::{helm, tool};

const PAGE: &str = include_str!("../../docs/testing.md");
const MARK: &str = "<!-- run by tests/kubectl/testing_page.rs -->\n```sh\n";

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
";

fn widget(size: u8) -> String {
    format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: w}}\nspec: {{size: {size}}}\n")
}

/// The commands below the mark, in order.
fn commands() -> Vec<&'static str> {
    let (block, _) = PAGE.split_once(MARK).and_then(|(_, rest)| rest.split_once("```")).expect("the block");
    block.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// A directory as the page describes it, and one with programs.
async fn prepare(dir: &Path) {
    for (path, text) in
        [("crds/w.yaml", DEFINITION), ("manifests/w.yaml", &widget(1)), ("changed/w.yaml", &widget(2))]
    {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("create it");
        std::fs::write(path, text).expect("write a manifest");
    }
    symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chart"), dir.join("chart"))
        .expect("link");
    std::fs::create_dir(dir.join("bin")).expect("create it");
    let programs = [
        ("rowplane", env!("CARGO_BIN_EXE_rowplane").into()),
        ("kubectl", tool::program(37).await),
        ("helm", helm::program().await),
    ];
    for (name, program) in programs {
        symlink(program, dir.join("bin").join(name)).expect("link");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_page_do_what_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    prepare(dir.path()).await;
    let path = format!("{}:{}", dir.path().join("bin").display(), std::env::var("PATH").expect("a PATH"));
    let run = async |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(dir.path()).env("PATH", &path).env("HOME", dir.path());
        let output = shell.output().await.expect("run a shell");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let commands = commands();
    let [helm, diff, apply] = commands[..] else { panic!("{commands:?}") };
    let (code, objects, problems) = run(helm).await;
    assert_eq!(code, Some(0), "{problems}");
    assert_eq!(
        objects.lines().filter(|line| line.ends_with(" created (server dry run)")).count(),
        25,
        "{objects}"
    );
    let (code, changes, problems) = run(diff).await;
    assert!(code == Some(1) && changes.contains("\n+  size: 2\n"), "{code:?} {changes} {problems}");
    let (code, applied, problems) = run(apply).await;
    assert_eq!(
        (code, applied.as_str()),
        (Some(0), "widget.example.com/w serverside-applied\n"),
        "{problems}"
    );

    // What is wrong with a chart or an object is found.
    std::fs::write(dir.path().join("manifests/w.yaml"), widget(1).replace("size", "sizes")).expect("write");
    let (code, _, problems) = run(apply).await;
    assert!(code == Some(1) && problems.contains(".spec.sizes: field not declared in schema"), "{problems}");
}
