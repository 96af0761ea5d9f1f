//! A wall clock that a test sets while servers run, into which `preloaded/clock.c` is loaded.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::preloaded;

/// What a new clock lacks: a server's certificates are then valid on all clocks that are less behind, and clients, whose
/// clocks are right, accept them.
const BEHIND: i64 = DAY / 2;
pub const DAY: i64 = 24 * 60 * 60;

pub struct WallClock {
    file: File,
    path: PathBuf,
}

impl WallClock {
    /// A clock that is half a day behind. The test and its server share the file, which is made.
    pub fn new(path: &Path) -> Self {
        let file = File::options().create(true).truncate(true).write(true).open(path).expect("a file");
        let clock = Self { file, path: path.to_owned() };
        clock.set(-BEHIND);
        clock
    }

    /// Sets the clock ahead of the machine's by so many seconds, or behind.
    pub fn set(&self, ahead: i64) {
        self.file.write_all_at(&ahead.to_ne_bytes(), 0).expect("set the clock");
    }

    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let library = preloaded::compile("tests/support/preloaded/clock.c");
        [("LD_PRELOAD", library.into()), ("ROWPLANE_CLOCK", self.path.clone().into())]
    }
}
