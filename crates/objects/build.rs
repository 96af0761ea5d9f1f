//! Compiles `proto/` into the table of types that `schema::types` holds, and into the rules of declarative validation.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/rules.rs"]
mod rules;
#[path = "build/types.rs"]
mod types;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("proto");
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=build");
    let mut files = Vec::new();
    collect(root, &mut files)?;
    // Ids of messages follow this order; a build must not depend on that of the directory.
    files.sort();
    let mut compiler = protox::Compiler::new([root])?;
    compiler.open_files(files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let types = types::read(&compiler.descriptor_pool())?;
    fs::write(out.join("types.rs"), types.table()?)?;
    fs::write(out.join("rules.rs"), rules::tables(&types)?)?;
    Ok(())
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
