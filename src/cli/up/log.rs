//! A program's output in a file of limited size.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The size from which on a new file is begun; the one before is kept as `NAME.log.1`.
const LARGEST: u64 = 32 << 20;
/// The longest last line that is remembered, in bytes.
const LONGEST_LINE: usize = 1024;

pub struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    /// The last line that was not empty, and the beginning of the one that is being written.
    last: Vec<u8>,
    current: Vec<u8>,
}

impl Log {
    /// Opens the file, at whose end output is added.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, size, last: Vec::new(), current: Vec::new() })
    }

    /// Adds output. What cannot be written is lost: a full disk must not hold the program up.
    pub fn add(&mut self, output: &[u8]) {
        if self.size >= LARGEST
            && let Ok(file) = self.next_file()
        {
            (self.file, self.size) = (file, 0);
        }
        let _ = self.file.write_all(output);
        self.size += output.len() as u64;
        for byte in output {
            match byte {
                b'\n' if self.current.is_empty() => {}
                b'\n' => self.last = std::mem::take(&mut self.current),
                _ if self.current.len() < LONGEST_LINE => self.current.push(*byte),
                _ => {}
            }
        }
    }

    /// The last line of this run that is not empty.
    pub fn last_line(&self) -> String {
        let line = if self.current.is_empty() { &self.last } else { &self.current };
        String::from_utf8_lossy(line).trim().to_owned()
    }

    fn next_file(&self) -> io::Result<File> {
        let mut before = self.path.clone().into_os_string();
        before.push(".1");
        std::fs::rename(&self.path, before)?;
        OpenOptions::new().create(true).append(true).open(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_known_and_a_large_file_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let mut log = Log::open(&path).unwrap();
        assert_eq!(log.last_line(), "");
        log.add(b"one\ntw");
        assert_eq!(log.last_line(), "tw");
        log.add(b"o\n\n");
        assert_eq!(log.last_line(), "two");
        log.size = LARGEST;
        log.add(b"three\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(std::fs::read_to_string(dir.path().join("x.log.1")).unwrap(), "one\ntwo\n\n");
    }
}
