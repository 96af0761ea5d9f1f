//! What a server keeps is nobody else's to read: keys, tokens, every Secret.

use std::path::Path;

use super::config::Config;
use super::datastore::Datastore;
use crate::private_files;

/// Files whose names begin so are the server's own. (The store looks after its files itself.)
const OWN: [&str; 3] = ["mark-", "high-water-mark", "admin.kubeconfig"];
const KEY: &str = ".key";

/// Takes from others what an earlier release, or whoever copied the files here, has left them.
pub(super) fn narrow(data_dir: &Path) {
    narrow_in(data_dir, |name| OWN.iter().any(|own| name.starts_with(own)));
    narrow_in(&data_dir.join("pki"), |name| name.ends_with(KEY));
}

/// The directories stay as they are.
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
    // A directory that is not there yet holds nothing.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(&is_own) {
            private_files::narrow(&entry.path());
        }
    }
}
