//! Libraries that are preloaded into a program (LD_PRELOAD), to see or to change what the system does for it.

use std::path::{Path, PathBuf};

/// Compiles a source file of this repository. The library can be read by every user.
pub fn compile(source: &str) -> PathBuf {
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
