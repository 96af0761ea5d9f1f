//! OpenAPI documents without texts, for those who do without the feature `descriptions` and so without compiling `k8s-openapi`.

use std::error::Error;
use std::fs::File;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Writes no record, in gzip.
pub fn write(target: &Path) -> Result<(), Box<dyn Error>> {
    GzEncoder::new(File::create(target)?, Compression::default()).finish()?;
    Ok(())
}
