//! A disk that is full, fails or is slow while a test says so, under a server into which `preloaded/disk.c` is loaded.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::preloaded;

/// What happens to a call that is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Files cannot be made or become longer (ENOSPC); what is there can be read and overwritten.
    Full,
    /// Reads, writes and syncs fail (EIO).
    Failing,
    /// The call takes its time.
    Slow(Duration),
}

pub struct Disk {
    control: File,
    path: PathBuf,
}

impl Disk {
    /// A disk that works. The test and its servers share the control file, which is made.
    pub fn new(control: &Path) -> Self {
        std::fs::write(control, [0; 16]).expect("a file");
        std::fs::set_permissions(control, std::fs::Permissions::from_mode(0o666)).expect("a mode");
        let file = File::options().read(true).write(true).open(control).expect("open the control");
        Self { control: file, path: control.to_owned() }
    }

    /// The environment of a server whose files with paths that begin so are on the disk.
    pub fn environment(&self, paths: &Path) -> [(&'static str, OsString); 3] {
        [
            ("LD_PRELOAD", preloaded::compile("tests/support/preloaded/disk.c").into()),
            ("ROWPLANE_DISK_CONTROL", self.path.clone().into()),
            ("ROWPLANE_DISK", paths.into()),
        ]
    }

    /// From now on, one of so many calls is struck.
    pub fn strike(&self, trouble: Trouble, one_in: u32) {
        let (kind, delay) = match trouble {
            Trouble::Full => (1, Duration::ZERO),
            Trouble::Failing => (2, Duration::ZERO),
            Trouble::Slow(delay) => (3, delay),
        };
        self.write(4, one_in);
        self.write(8, delay.as_millis() as u32);
        self.write(0, kind);
    }

    pub fn heal(&self) {
        self.write(0, 0);
    }

    /// How many calls have been struck.
    pub fn struck(&self) -> u32 {
        let mut word = [0; 4];
        self.control.read_exact_at(&mut word, 12).expect("read the control");
        u32::from_ne_bytes(word)
    }

    fn write(&self, at: u64, word: u32) {
        self.control.write_all_at(&word.to_ne_bytes(), at).expect("write the control");
    }
}
