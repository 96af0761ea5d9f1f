//! Compiles `proto/` into the table of types that `schema::types` holds and gnostic's messages into those that encode
//! OpenAPI, and gathers the texts that OpenAPI shows.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "build/descriptions.rs"]
mod descriptions;
#[path = "build/gnostic.rs"]
mod gnostic;
#[path = "build/types.rs"]
mod types;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("proto");
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=build");
    let mut files = Vec::new();
    collect(root, &mut files)?;
    // Ids of messages follow this order; a build must not depend on that of the directory.
    files.sort();
    let mut compiler = protox::Compiler::new([root])?;
    compiler.open_files(files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("types.rs"), types::table(&compiler.descriptor_pool())?)?;
    for version in ["v2", "v3"] {
        let mut compiler = protox::Compiler::new(["build/gnostic"])?;
        compiler.open_file(format!("{version}.proto"))?;
        let table = gnostic::table(&compiler.descriptor_pool(), &format!("openapi.{version}"))?;
        fs::write(out.join(format!("gnostic_{version}.rs")), table)?;
    }
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
