//! The files of the console: compressed copies, and a table of all of them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folders with files, and the paths at which the files are served below `/console/`.
const FOLDERS: [(&str, &str); 2] = [("assets", ""), ("vendor", "vendor/")];

/// The media types of files by their endings; other files are not served.
const TYPES: [(&str, &str); 4] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
];

/// Writes `console.rs`, an array of `Asset`, and the compressed files that it includes.
pub fn write(source: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", source.display());
    let source = source.canonicalize()?;
    let mut files = BTreeMap::new();
    for (folder, prefix) in FOLDERS {
        for entry in fs::read_dir(source.join(folder))? {
            let path = entry?.path();
            let ending = path.extension().unwrap_or_default();
            if let Some((_, media)) = TYPES.iter().find(|(known, _)| ending == *known) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.insert(format!("{prefix}{name}"), (path, media));
            }
        }
    }
    let mut table = "[\n".to_owned();
    for (name, (path, media)) in files {
        let plain = fs::read(&path)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&plain)?;
        let packed = out.join(format!("console-{}.gz", name.replace('/', "-")));
        fs::write(&packed, encoder.finish()?)?;
        let mut hasher = DefaultHasher::new();
        plain.hash(&mut hasher);
        let tag = format!("W/\"{:016x}\"", hasher.finish());
        writeln!(
            table,
            "Asset {{ name: {name:?}, media: {media:?}, tag: {tag:?}, plain: include_bytes!({path:?}), packed: \
             include_bytes!({packed:?}) }},"
        )?;
    }
    table.push(']');
    Ok(fs::write(out.join("console.rs"), table)?)
}
