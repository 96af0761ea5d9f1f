//! A file that is put aside when it is full: `audit.log` becomes `audit-2026-01-02T03-04-05.678.log`, as upstream's does.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::audit::config::Rotation;
use crate::private_files::MODE;
use crate::wall_clock::WallClock;

const MEBIBYTE: u64 = 1 << 20;
/// The time in the names of files that were put aside; UTC.
const TIME: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const COMPRESSED: &str = ".gz";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub struct File {
    path: PathBuf,
    rotation: Rotation,
    clock: WallClock,
    file: fs::File,
    size: u64,
    is_regular: bool,
}

/// A file that was put aside.
struct Backup {
    path: PathBuf,
    at: SystemTime,
    is_compressed: bool,
}

impl File {
    /// Opens the file for appending, and makes it and its directory if they are missing.
    pub fn open(path: PathBuf, rotation: Rotation, clock: &WallClock) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::create_dir_all(directory)?;
        }
        let file = appending(&path)?;
        let metadata = file.metadata()?;
        let (size, is_regular, clock) = (metadata.len(), metadata.is_file(), clock.clone());
        Ok(Self { path, rotation, clock, file, size, is_regular })
    }

    /// Whether it is a file on a disk, and not, say, a pipe.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Whether lines of this length can be appended without putting the file aside.
    pub fn has_room(&self, length: usize) -> bool {
        self.size.saturating_add(length as u64) <= self.limit()
    }

    /// Appends lines, each with its end. None of them is divided between two files.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.fitting(rest));
            if now.is_empty() {
                self.rotate()?;
                continue;
            }
            self.file.write_all(now)?;
            self.size += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// The length of the lines that fit into the file. Into an empty one, a line fits always.
    fn fitting(&self, lines: &[u8]) -> usize {
        if self.has_room(lines.len()) {
            return lines.len();
        }
        let room = usize::try_from(self.limit().saturating_sub(self.size)).unwrap_or(usize::MAX);
        let whole = memchr::memrchr(b'\n', &lines[..room.min(lines.len())]).map_or(0, |end| end + 1);
        match (whole, self.size) {
            (0, 0) => memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1),
            _ => whole,
        }
    }

    fn limit(&self) -> u64 {
        match self.rotation.largest {
            0 => u64::MAX,
            megabytes => megabytes.saturating_mul(MEBIBYTE),
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.free_backup_path())?;
        self.file = appending(&self.path)?;
        self.size = 0;
        // What cannot be cleared away now is cleared away the next time.
        if let Err(error) = self.clear_away() {
            tracing::warn!(path = %self.path.display(), %error, "cannot clear away old audit logs");
        }
        Ok(())
    }

    fn free_backup_path(&self) -> PathBuf {
        let mut at = self.clock.timestamp();
        loop {
            let (stem, extension) = self.name_parts();
            let time = at.strftime(TIME);
            let path = self.path.with_file_name(format!("{stem}-{time}{extension}"));
            if !path.exists() && !with_suffix(&path).exists() {
                return path;
            }
            at += Duration::from_millis(1);
        }
    }

    /// Removes and compresses files that were put aside, as the settings say.
    fn clear_away(&self) -> io::Result<()> {
        let Rotation { days, backups: most, compress, .. } = self.rotation;
        let mut backups = self.backups()?;
        backups.sort_by_key(|backup| std::cmp::Reverse(backup.at));
        let too_many = if most == 0 { backups.len() } else { backups.len().min(most as usize) };
        let oldest = self.clock.now().checked_sub(DAY * days);
        for (index, backup) in backups.iter().enumerate() {
            let is_too_old = days > 0 && oldest.is_some_and(|oldest| backup.at < oldest);
            if index >= too_many || is_too_old {
                fs::remove_file(&backup.path)?;
            } else if compress && !backup.is_compressed {
                compressed(&backup.path)?;
            }
        }
        Ok(())
    }

    fn backups(&self) -> io::Result<Vec<Backup>> {
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let mut backups = Vec::new();
        for entry in fs::read_dir(directory.unwrap_or(Path::new(".")))? {
            let path = entry?.path();
            backups.extend(self.backup(path));
        }
        Ok(backups)
    }

    fn backup(&self, path: PathBuf) -> Option<Backup> {
        let (stem, extension) = self.name_parts();
        let name = path.file_name()?.to_str()?;
        let is_compressed = name.ends_with(COMPRESSED);
        let name = name.strip_suffix(COMPRESSED).unwrap_or(name);
        let time = name.strip_prefix(&stem)?.strip_prefix('-')?.strip_suffix(&extension)?;
        let time = DateTime::strptime(TIME, time).ok()?;
        let at = TimeZone::UTC.to_timestamp(time).ok()?.into();
        Some(Backup { path, at, is_compressed })
    }

    /// The file's name before its extension, and the extension with its dot.
    fn name_parts(&self) -> (String, String) {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let extension = text(self.path.extension());
        let extension = if extension.is_empty() { extension } else { format!(".{extension}") };
        (text(self.path.file_stem()), extension)
    }
}

fn appending(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().create(true).append(true).mode(MODE).open(path)
}

fn with_suffix(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(COMPRESSED);
    name.into()
}

/// Replaces a file by its compressed form.
fn compressed(path: &Path) -> io::Result<()> {
    let target =
        OpenOptions::new().create(true).truncate(true).write(true).mode(MODE).open(with_suffix(path))?;
    let mut encoder = GzEncoder::new(target, Compression::default());
    io::copy(&mut fs::File::open(path)?, &mut encoder)?;
    encoder.finish()?.flush()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const UNLIMITED: Rotation = Rotation { largest: 1, days: 0, backups: 0, compress: false };

    fn line(letter: u8, length: usize) -> Vec<u8> {
        let mut line = vec![letter; length - 1];
        line.push(b'\n');
        line
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_put_aside_and_no_line_is_divided() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("logs/audit.log");
        let mut file = File::open(path.clone(), UNLIMITED, &WallClock::default()).expect("opens");
        file.write(&[line(b'a', 600 << 10), line(b'b', 600 << 10), line(b'c', 100 << 10)].concat())
            .expect("writes");
        let names = names(path.parent().expect("a parent"));
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names[0].starts_with("audit-2") && names[0].ends_with(".log"), "{names:?}");
        assert_eq!(fs::metadata(&path).expect("a file").len(), 700 << 10);
        let mut again = File::open(path.clone(), UNLIMITED, &WallClock::default()).expect("opens");
        again.write(&line(b'd', 10)).expect("writes");
        assert_eq!(fs::metadata(&path).expect("a file").len(), (700 << 10) + 10);
    }

    #[test]
    fn a_line_beyond_the_limit_gets_a_file_of_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = File::open(dir.path().join("audit"), UNLIMITED, &WallClock::default()).expect("opens");
        file.write(&[line(b'a', 2 << 20), line(b'b', 2 << 20)].concat()).expect("writes");
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn auth_93_only_so_many_files_are_kept_and_they_are_compressed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("audit.log");
        fs::write(dir.path().join("audit-other.log"), "not ours").expect("writes");
        let rotation = Rotation { backups: 2, compress: true, ..UNLIMITED };
        let mut file = File::open(path, rotation, &WallClock::default()).expect("opens");
        for letter in b'a'..=b'e' {
            file.write(&line(letter, 1 << 20)).expect("writes");
        }
        let names = names(dir.path());
        let kept: Vec<&String> = names.iter().filter(|name| name.ends_with(".log.gz")).collect();
        assert_eq!((names.len(), kept.len()), (4, 2), "{names:?}");
        let newest = fs::File::open(dir.path().join(kept[1])).expect("a file");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(newest).read_to_end(&mut text).expect("gzip");
        assert_eq!((text.len(), text[0]), (1 << 20, b'd'));
    }

    #[test]
    fn old_files_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let old = dir.path().join("audit-2020-01-02T03-04-05.678.log");
        fs::write(&old, "old").expect("writes");
        let mut file = File::open(
            dir.path().join("audit.log"),
            Rotation { days: 7, ..UNLIMITED },
            &WallClock::default(),
        )
        .expect("opens");
        file.write(&[line(b'a', 1 << 20), line(b'b', 1 << 20)].concat()).expect("writes");
        assert!(!old.exists());
        assert_eq!(names(dir.path()).len(), 2);
    }
}
