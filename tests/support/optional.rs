//! Programs in other languages, which are not available on every machine.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The path that a script in `tests/tools` prints. `None` if it reports that the program is not available on this
/// machine; that is printed, and `./test` repeats it at its end.
pub async fn program(script: &str, what: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(script);
    let output = Command::new(&script).arg(tools).output().await.expect("run the script");
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Some(PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())),
        Some(3) => {
            note(&format!("{what}: {}", said.trim()));
            None
        }
        _ => panic!("{}: {said}", script.display()),
    }
}

/// Says what could not be tested on this machine; `./test` repeats it at its end.
pub fn note(what: &str) {
    let note = format!("NOT TESTED: {what}\n");
    // Written directly, since the test harness captures the output of macros.
    std::io::stderr().write_all(note.as_bytes()).expect("write");
    if let Some(notes) = std::env::var_os("ROWPLANE_TEST_NOTES") {
        let mut notes = std::fs::File::options().append(true).open(notes).expect("open the notes");
        notes.write_all(note.as_bytes()).expect("write a note");
    }
}
