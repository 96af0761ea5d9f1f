//! Libraries that are preloaded into a program (LD_PRELOAD), to see or to change what the system does for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tokio::process::Command;

/// Compiles a source file of this repository, once in the life of this process. The library can be read by every user.
pub fn compile(source: &'static str) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap();
    compiled.entry(source).or_insert_with(|| made(source)).clone()
}

fn made(source: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let name = source.file_name().expect("a file");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("so");
    // Tests that run at the same time compile the same.
    let made = library.with_extension(format!("{:08x}", rand::random::<u32>()));
    let mut command = std::process::Command::new("cc");
    command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&made).arg(&source);
    assert!(command.status().expect("a C compiler").success());
    std::fs::rename(&made, &library).expect("renamed");
    library
}

/// Adds to the environment of a program, and to the libraries that are preloaded into it.
pub fn preload(command: &mut Command, environment: impl IntoIterator<Item = (&'static str, OsString)>) {
    for (variable, mut value) in environment {
        let present = command.as_std().get_envs().find(|(name, _)| *name == OsStr::new("LD_PRELOAD"));
        if let (true, Some((_, Some(others)))) = (variable == "LD_PRELOAD", present) {
            value.push(":");
            value.push(others);
        }
        command.env(variable, value);
    }
}
