//! What a disk may hold after the power has gone.
//!
//! What a sync has covered is there. Of everything else in a file, any part may be: writes in any order, torn into
//! sectors. Directories keep their order, as journals of file systems do: of what was not synced, a beginning is there.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::record::{Change, Number, Record};

const SECTOR: u64 = 512;

/// A file's place among all that have been created.
type Id = usize;

/// What becomes of changes of a file that no sync has covered.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    Kept,
    /// The first of them are there.
    Cut(usize),
    /// Each is there with this chance, in percent.
    Some(u32),
    /// Each sector of each is there with this chance, in percent.
    Torn(u32),
}

/// The changes of a file's content, and how many of them are synced.
#[derive(Default)]
struct Content<'a> {
    mode: u32,
    changes: Vec<&'a Change>,
    synced: usize,
}

/// The disk at the moment of the cut.
#[derive(Default)]
struct Disk<'a> {
    files: Vec<Content<'a>>,
    /// The newest file with a number.
    numbers: HashMap<Number, Id>,
    /// Changes of directories, and whether a sync has covered them.
    entries: Vec<(&'a Change, Option<Id>, bool)>,
    /// What a sync that runs will have covered.
    running: HashMap<u64, Covered>,
}

enum Covered {
    File(Id, usize),
    Entries(PathBuf, usize),
}

/// Makes a directory into what may be left of the recorded one if the power goes when the record has this length.
/// `lies` names files whose syncs do nothing, as on a disk that lies.
pub fn cut(record: &Record, at: u64, random: &mut StdRng, lies: &str, directory: &Path) {
    let mut disk = Disk::default();
    let changes = record.changes.iter().take_while(|(end, _)| *end <= at);
    changes.for_each(|(_, change)| disk.take(change, lies));
    let paths = disk.paths(random);
    for (path, file) in paths {
        let path = directory.join(path);
        let Some(file) = file else {
            std::fs::create_dir_all(&path).expect("a directory");
            continue;
        };
        // The directory's own name was not synced.
        if path.parent().is_none_or(|parent| !parent.is_dir()) {
            continue;
        }
        let content = &disk.files[file];
        let mut made =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
        made.write_all(&content.after(record, random)).expect("written");
        File::set_permissions(&made, std::fs::Permissions::from_mode(content.mode)).expect("a mode");
    }
}

impl<'a> Disk<'a> {
    fn take(&mut self, change: &'a Change, lies: &str) {
        match change {
            Change::Write { file, .. } | Change::Truncate { file, .. } => {
                // The test's own file, the log that the server writes to, was there before.
                let Some(id) = self.numbers.get(file) else { return };
                self.files[*id].changes.push(change);
            }
            Change::Create { file, mode, .. } => {
                let id = self.files.len();
                self.files.push(Content { mode: *mode, ..Content::default() });
                self.numbers.insert(*file, id);
                self.entries.push((change, Some(id), false));
            }
            Change::Rename { .. }
            | Change::Unlink { .. }
            | Change::MakeDirectory { .. }
            | Change::Link { .. } => self.entries.push((change, None, false)),
            Change::SyncBegins { sync, file, path } => {
                let covered = match self.numbers.get(file) {
                    Some(id) if !lies.is_empty() && path.to_string_lossy().ends_with(lies) => {
                        Covered::File(*id, 0)
                    }
                    Some(id) => Covered::File(*id, self.files[*id].changes.len()),
                    None => Covered::Entries(path.clone(), self.entries.len()),
                };
                self.running.insert(*sync, covered);
            }
            Change::SyncEnds { sync } => match self.running.remove(sync) {
                Some(Covered::File(id, count)) => {
                    let file = &mut self.files[id];
                    file.synced = file.synced.max(count);
                }
                Some(Covered::Entries(directory, count)) => {
                    let within = |path: &Path| path.parent() == Some(&directory);
                    for (change, _, synced) in &mut self.entries[..count] {
                        *synced |= match change {
                            Change::Create { path, .. }
                            | Change::Unlink { path }
                            | Change::MakeDirectory { path } => within(path),
                            Change::Rename { to, .. } | Change::Link { to, .. } => within(to),
                            _ => false,
                        };
                    }
                }
                None => {}
            },
        }
    }

    /// The paths that are there, with their files; directories have none.
    fn paths(&self, random: &mut StdRng) -> BTreeMap<PathBuf, Option<Id>> {
        let open = self.entries.iter().filter(|(_, _, synced)| !synced).count();
        let mut left = random.random_range(0..=open);
        let mut paths: BTreeMap<PathBuf, Option<Id>> = BTreeMap::new();
        for (change, id, synced) in &self.entries {
            if !synced {
                if left == 0 {
                    continue;
                }
                left -= 1;
            }
            match change {
                Change::Create { path, .. } => _ = paths.insert(path.clone(), *id),
                Change::MakeDirectory { path } => _ = paths.insert(path.clone(), None),
                Change::Unlink { path } => _ = paths.remove(path),
                Change::Rename { from, to } => {
                    if let Some(moved) = paths.remove(from) {
                        paths.insert(to.clone(), moved);
                    }
                }
                Change::Link { from, to } => {
                    if let Some(file) = paths.get(from).copied() {
                        paths.insert(to.clone(), file);
                    }
                }
                _ => {}
            }
        }
        paths
    }
}

impl Content<'_> {
    fn after(&self, record: &Record, random: &mut StdRng) -> Vec<u8> {
        let open = self.changes.len() - self.synced;
        let fate = match random.random_range(0..6) {
            0 => Fate::Lost,
            1 => Fate::Kept,
            2 => Fate::Cut(random.random_range(0..=open)),
            3 => Fate::Some(random.random_range(1..100)),
            _ => Fate::Torn(random.random_range(1..100)),
        };
        let mut bytes = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            let chance = |random: &mut StdRng, percent| random.random_ratio(percent, 100);
            let fate = if index < self.synced { Fate::Kept } else { fate };
            let is_there = match fate {
                Fate::Lost => false,
                Fate::Kept | Fate::Torn(_) => true,
                Fate::Cut(count) => index - self.synced < count,
                Fate::Some(percent) => chance(random, percent),
            };
            match change {
                Change::Write { at, data, .. } if is_there => {
                    let data = record.data(data);
                    let mut sector = |at: u64, part: &[u8]| {
                        if let Fate::Torn(percent) = fate
                            && !chance(random, percent)
                        {
                            return;
                        }
                        let (at, end) = (at as usize, at as usize + part.len());
                        bytes.resize(bytes.len().max(end), 0);
                        bytes[at..end].copy_from_slice(part);
                    };
                    let (mut at, mut rest) = (*at, data);
                    while !rest.is_empty() {
                        let length = rest.len().min((SECTOR - at % SECTOR) as usize);
                        sector(at, &rest[..length]);
                        (at, rest) = (at + length as u64, &rest[length..]);
                    }
                }
                Change::Truncate { length, .. } if is_there => bytes.resize(*length as usize, 0),
                _ => {}
            }
        }
        bytes
    }
}
