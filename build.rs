//! Compiles gnostic's messages into those that encode OpenAPI, gathers the texts that OpenAPI shows, and
//! compresses the files of the console.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "build/console.rs"]
mod console;
#[cfg_attr(feature = "descriptions", path = "build/descriptions.rs")]
#[cfg_attr(not(feature = "descriptions"), path = "build/no_descriptions.rs")]
mod descriptions;
#[path = "build/gnostic.rs"]
mod gnostic;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for version in ["v2", "v3"] {
        let mut compiler = protox::Compiler::new(["build/gnostic"])?;
        compiler.open_file(format!("{version}.proto"))?;
        let table = gnostic::table(&compiler.descriptor_pool(), &format!("openapi.{version}"))?;
        fs::write(out.join(format!("gnostic_{version}.rs")), table)?;
    }
    console::write(Path::new("src/http/console"), &out)?;
    descriptions::write(&out.join("descriptions.gz"))
}
