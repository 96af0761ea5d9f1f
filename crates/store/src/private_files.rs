//! Files that only their owner may read, since they contain Secrets.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The mode of new files.
pub const MODE: u32 = 0o600;
/// The permissions of users other than the owner.
const OTHERS: u32 = 0o077;

/// Removes other users' permissions from a file of this program, if it exists.
pub fn narrow(path: &Path) {
    let wide = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.permissions().mode() & 0o7777,
        // Opening it will report what it is.
        Ok(_) => return,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => {
            return tracing::warn!(path = %path.display(), %error, "cannot see who may read this file");
        }
    };
    if wide & OTHERS == 0 {
        return;
    }
    let narrowed = std::fs::set_permissions(path, Permissions::from_mode(wide & !OTHERS));
    let (path, mode) = (path.display(), format!("{wide:o}"));
    match narrowed {
        Ok(()) => tracing::warn!(%path, mode, "others could open this file; only its owner may now"),
        Err(error) => {
            tracing::warn!(%path, mode, %error, "others may open this file, and that cannot be changed")
        }
    }
}

/// Warns about a directory that others can access. It is not changed, since its creator may have had reasons.
pub fn warn_of_wide_directory(path: &Path) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            let (path, mode) = (path.display(), format!("{mode:o}"));
            tracing::warn!(%path, mode, "others may look into this directory; its files are private, chmod 700 makes it so too");
        }
    }
}
