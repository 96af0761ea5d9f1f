//! Restricts the files of a server to their owner: they contain keys, tokens and Secrets.

use std::path::Path;

use super::config::Config;
use super::datastore::Datastore;
use crate::private_files;

/// Files of the server start with these names. (The store restricts its own files.)
const OWN: [&str; 3] = ["mark-", "high-water-mark", "admin.kubeconfig"];
const KEY: &str = ".key";

/// Removes other users' permissions from files that an earlier release, or somebody who copied them, has left readable.
pub(super) fn narrow(data_dir: &Path) {
    narrow_in(data_dir, |name| OWN.iter().any(|own| name.starts_with(own)));
    for directory in ["pki", "pki/front-proxy"] {
        narrow_in(&data_dir.join(directory), |name| name.ends_with(KEY));
    }
}

/// Warns about directories that others can read. The directories are not changed.
pub(super) fn warn_of_wide_directories(config: &Config) {
    let data_dir = config.data_dir.as_deref();
    data_dir.into_iter().for_each(private_files::warn_of_wide_directory);
    if let Datastore::Sqlite(path) = &config.datastore
        && let Some(directory) = path.parent()
        && !directory.as_os_str().is_empty()
        && Some(directory) != data_dir
    {
        private_files::warn_of_wide_directory(directory);
    }
}

fn narrow_in(directory: &Path, is_own: impl Fn(&str) -> bool) {
    // A directory that does not exist contains nothing.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(&is_own) {
            private_files::narrow(&entry.path());
        }
    }
}
