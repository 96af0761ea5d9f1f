//! What `recorder.c` has recorded of a server's files.

use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::support::preloaded;

/// A file's number; another file may get it once this one is gone.
pub type Number = u64;

pub enum Change {
    Write { file: Number, at: u64, data: Range<usize> },
    Truncate { file: Number, length: u64 },
    Create { file: Number, mode: u32, path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Unlink { path: PathBuf },
    MakeDirectory { path: PathBuf },
    Link { from: PathBuf, to: PathBuf },
    SyncBegins { sync: u64, file: Number, path: PathBuf },
    SyncEnds { sync: u64 },
}

/// All changes in their order, each with the length of the record's file once the change stands in it.
pub struct Record {
    bytes: Vec<u8>,
    pub changes: Vec<(u64, Change)>,
    /// What was there before, and is on the disk for certain.
    before: Vec<Before>,
}

/// A file or directory from before the first change.
pub struct Before {
    pub path: PathBuf,
    /// `None` for a directory.
    pub file: Option<OldFile>,
}

pub struct OldFile {
    pub number: Number,
    pub mode: u32,
    /// A copy that nobody changes.
    pub copy: PathBuf,
}

impl Before {
    /// Everything below a root which has the same content in another directory.
    pub fn read(root: &Path, copy: &Path) -> Vec<Self> {
        let mut found = Vec::new();
        let mut open = vec![PathBuf::new()];
        while let Some(directory) = open.pop() {
            for entry in root.join(&directory).read_dir().expect("a directory") {
                let path = directory.join(entry.expect("an entry").file_name());
                let about = root.join(&path).symlink_metadata().expect("stat");
                let file = (!about.is_dir()).then(|| OldFile {
                    number: about.ino(),
                    mode: about.mode() & 0o7777,
                    copy: copy.join(&path),
                });
                if file.is_none() {
                    open.push(path.clone());
                }
                found.push(Self { path, file });
            }
        }
        found
    }
}

/// The recorder as a library.
pub fn recorder() -> PathBuf {
    preloaded::compile("tests/crash/power/recorder.c")
}

const HEAD: usize = 40;

impl Record {
    /// `root` is the directory whose files were recorded; paths are given below it.
    pub fn read(file: &Path, root: &Path) -> Self {
        let bytes = std::fs::read(file).expect("the record");
        let root = root.canonicalize().expect("the root");
        let (mut changes, mut start) = (Vec::new(), 0);
        while let Some(head) = bytes.get(start..start + HEAD) {
            let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
            let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
            let (file, at) = (long(16), long(24));
            let [first, second, third] = [word(4) as usize, word(8) as usize, long(32) as usize];
            let path_end = start + HEAD + first;
            let end = path_end + second + third;
            let path = |range: Range<usize>| {
                let text = std::str::from_utf8(&bytes[range]).expect("a path");
                Path::new(text).strip_prefix(&root).expect("a path below the root").to_owned()
            };
            let one = || path(start + HEAD..path_end);
            let other = || path(path_end..path_end + second);
            changes.push((
                end as u64,
                match word(0) {
                    1 => Change::Write { file, at, data: path_end + second..end },
                    2 => Change::Truncate { file, length: at },
                    3 => Change::Create { file, mode: at as u32, path: one() },
                    4 => Change::Rename { from: one(), to: other() },
                    5 => Change::Unlink { path: one() },
                    6 => Change::MakeDirectory { path: one() },
                    7 => Change::Link { from: one(), to: other() },
                    8 => Change::SyncBegins { sync: at, file, path: one() },
                    9 => Change::SyncEnds { sync: at },
                    other => panic!("a record of kind {other}"),
                },
            ));
            start = end;
        }
        Self { bytes, changes, before: Vec::new() }
    }

    /// The record, of files that were partly there before.
    pub fn after(self, before: Vec<Before>) -> Self {
        Self { before, ..self }
    }

    pub fn summary(&self) -> String {
        let count = |is: fn(&Change) -> bool| self.changes.iter().filter(|(_, change)| is(change)).count();
        format!(
            "{} changes of files: {} writes, {} syncs, {} renames",
            self.changes.len(),
            count(|change| matches!(change, Change::Write { .. })),
            count(|change| matches!(change, Change::SyncBegins { .. })),
            count(|change| matches!(change, Change::Rename { .. })),
        )
    }

    pub fn before(&self) -> &[Before] {
        &self.before
    }

    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Any moment: every byte that was written has the same chance, and every change, however small.
    pub fn moment(&self, random: &mut StdRng) -> u64 {
        match random.random_bool(0.5) {
            true => random.random_range(1..=self.length()),
            false => self.changes[random.random_range(0..self.changes.len())].0,
        }
    }

    pub fn data(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }
}
