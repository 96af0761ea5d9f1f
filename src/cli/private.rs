//! What a server keeps is nobody else's to read: keys, tokens, every Secret.

use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

use super::config::ServeConfig;
use super::datastore::Datastore;
use crate::private_files;

/// Files whose names begin so are the server's own. (The store looks after its files itself.)
const OWN: [&str; 3] = ["mark-", "high-water-mark", "admin.kubeconfig"];
const KEY: &str = ".key";

/// From now on whatever this process makes is its owner's alone, unless it says otherwise.
pub(super) fn shut_out_others() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Takes from others what an earlier release, or whoever copied the files here, has left them.
pub(super) fn narrow(config: &ServeConfig) {
    narrow_in(&config.data_dir, |name| OWN.iter().any(|own| name.starts_with(own)));
    narrow_in(&config.pki_dir(), |name| name.ends_with(KEY));
}

/// The directories stay as they are.
pub(super) fn warn_of_wide_directories(config: &ServeConfig) {
    private_files::warn_of_wide_directory(&config.data_dir);
    if let Datastore::Sqlite(path) = &config.datastore
        && let Some(directory) = path.parent()
        && directory != config.data_dir
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
