//! The directory in which a server keeps what is not in its database.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::error::Error;

/// Creates the directory, accessible only by its owner.
pub fn create(dir: &Path) -> Result<(), Error> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| Error::DataDir { path: dir.to_owned(), source })
}

/// A directory that is removed with its server.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    pub fn create() -> Result<Self, Error> {
        #[expect(clippy::disallowed_methods, reason = "other processes share the directory")]
        let path = std::env::temp_dir().join(format!("rowplane-{:032x}", rand::random::<u128>()));
        create(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, path = %self.0.display(), "cannot remove a temporary directory");
        }
    }
}
