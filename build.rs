//! Compiles `proto/` into one set of descriptors, which `schema::types` reads at start, and gathers the texts that
//! OpenAPI shows.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/descriptions.rs"]
mod descriptions;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("proto");
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=build");
    let mut files = Vec::new();
    collect(root, &mut files)?;
    // Ids of messages follow this order; a build must not depend on that of the directory.
    files.sort();
    let mut compiler = protox::Compiler::new([root])?;
    // Imports are among the files, but for google's own descriptors of descriptors, which are no types.
    compiler.include_imports(false).open_files(files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("types.bin"), compiler.encode_file_descriptor_set())?;
    descriptions::write(&out.join("descriptions.gz"))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
