//! The mark's file: lines of a name and a value. It is replaced atomically, and durable once it is written.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Sighting;
use crate::revision::Revision;

/// The content of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    pub revision: Revision,
    pub sighting: Option<Sighting>,
}

/// Reads the file, and the one that earlier builds wrote. Missing files mean an empty mark.
pub fn read(path: &Path) -> io::Result<Saved> {
    match (read_one(path, parse)?, read_one(&of_earlier_builds(path), parse_number)?) {
        (Some(saved), Some(earlier)) => Ok(saved.max(earlier)),
        (saved, earlier) => Ok(saved.or(earlier).unwrap_or_default()),
    }
}

/// Merges `present` into the file: of each part the newer one is kept.
pub fn merge(path: &Path, present: Saved) -> io::Result<()> {
    let lock = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(path.with_extension("lock"))?;
    lock.lock()?;
    // A file that cannot be parsed is overwritten.
    let found = read_one(path, parse).unwrap_or_default();
    let merged = found.map_or(present, |found| found.max(present));
    if found == Some(merged) {
        return Ok(());
    }
    replace(path, &merged.to_text())
}

fn read_one(path: &Path, parse: fn(&str) -> Option<Saved>) -> io::Result<Option<Saved>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text)
            .map(Some)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it is empty or damaged")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file that earlier builds wrote: `high-water-mark-…` where today's is `mark-…`, and a number alone. It is read,
/// but never written: a server of an earlier build that shares the directory goes on using it, and would not start if
/// the file held anything but a number.
fn of_earlier_builds(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("high-water-{name}"))
}

fn parse_number(text: &str) -> Option<Saved> {
    Some(Saved { revision: Revision(text.trim().parse().ok()?), sighting: None })
}

fn parse(text: &str) -> Option<Saved> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let number = |name| value(name).map(str::parse::<u64>);
    let revision = Revision(number("revision")?.ok()?);
    let Some(timeline) = value("timeline") else {
        // A sighting must be complete or absent.
        return number("flushed")
            .or(number("system"))
            .is_none()
            .then_some(Saved { revision, sighting: None });
    };
    let sighting = Sighting {
        revision: Revision(number("sighted")?.ok()?),
        timeline: timeline.parse().ok()?,
        flushed: number("flushed")?.ok()?,
        system: number("system").transpose().ok()?,
        identity: number("identity").transpose().ok()?,
    };
    Some(Saved { revision, sighting: Some(sighting) })
}

impl Saved {
    /// The maximum of each part.
    fn max(self, other: Self) -> Self {
        Self { revision: self.revision.max(other.revision), sighting: self.sighting.max(other.sighting) }
    }

    fn to_text(self) -> String {
        let mut text = format!("revision {}\n", self.revision);
        if let Some(Sighting { revision, timeline, flushed, system, identity }) = self.sighting {
            text.push_str(&format!("sighted {revision}\ntimeline {timeline}\nflushed {flushed}\n"));
            if let Some(system) = system {
                text.push_str(&format!("system {system}\n"));
            }
            if let Some(identity) = identity {
                text.push_str(&format!("identity {identity}\n"));
            }
        }
        text
    }
}

/// Replaces the file durably. The new content is on the disk before it gets the file's name, and the name is on the
/// disk before this returns: after a power failure there is either the old file or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A random name, since containers that share the directory may even have the same process id.
    #[expect(clippy::disallowed_methods, reason = "other processes share the directory")]
    let fresh = path.with_extension(format!("{:08x}.new", rand::random::<u32>()));
    let written = write_synced(&fresh, text)
        .and_then(|()| std::fs::rename(&fresh, path))
        .and_then(|()| sync_directory(path));
    written.inspect_err(|_| drop(std::fs::remove_file(&fresh)))
}

fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
