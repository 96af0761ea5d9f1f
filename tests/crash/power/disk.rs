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

use super::record::{Before, Change, Number, Record};

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

impl Fate {
    /// The fate of a file of which so many changes are open.
    fn draw(open: usize, random: &mut StdRng) -> Self {
        match random.random_range(0..6) {
            0 => Fate::Lost,
            1 => Fate::Kept,
            2 => Fate::Cut(random.random_range(0..=open)),
            3 => Fate::Some(random.random_range(1..100)),
            _ => Fate::Torn(random.random_range(1..100)),
        }
    }
}

/// The changes of a file's content, and how many of them are synced.
#[derive(Default)]
struct Content<'a> {
    mode: u32,
    /// What it held before the first of them.
    before: Option<&'a Path>,
    changes: Vec<&'a Change>,
    synced: usize,
}

/// The disk at the moment of the cut.
#[derive(Default)]
struct Disk<'a> {
    files: Vec<Content<'a>>,
    /// The newest file with a number.
    numbers: HashMap<Number, Id>,
    /// The paths from before the first change; directories have no file.
    before: BTreeMap<PathBuf, Option<Id>>,
    /// Changes of directories, and whether a sync has covered them.
    entries: Vec<(&'a Change, Option<Id>, bool)>,
    /// What a sync that runs will have covered.
    running: HashMap<u64, Covered>,
}

enum Covered {
    /// So many changes of a file, and of names.
    File(Id, usize, usize),
    Entries(PathBuf, usize),
}

/// What is lost besides, and what is not.
#[derive(Clone, Copy, Default)]
pub struct Loss<'a> {
    /// A part of the paths of files whose syncs do nothing, as on a disk that lies.
    pub lies: Option<&'a str>,
    /// A directory that keeps everything, since it is of another machine.
    pub keeps: Option<&'a str>,
    /// Whether a sync of any file covers all earlier changes of names, as on ext4 and XFS, whose journal is written up to
    /// its end.
    pub journal: bool,
}

impl Loss<'_> {
    fn spares(&self, path: &Path) -> bool {
        self.keeps.is_some_and(|keeps| path.starts_with(keeps))
    }
}

/// Makes a directory into what may be left of the recorded one if the power goes when the record has this length.
pub fn cut(record: &Record, at: u64, random: &mut StdRng, loss: Loss<'_>, directory: &Path) {
    let mut disk = Disk::before(record);
    let changes = record.changes.iter().take_while(|(end, _)| *end <= at);
    changes.for_each(|(_, change)| disk.take(change, loss));
    let paths = disk.paths(random);
    for (name, file) in paths {
        let path = directory.join(&name);
        let Some(file) = file else {
            std::fs::create_dir_all(&path).expect("a directory");
            continue;
        };
        // The directory's own name was not synced.
        if path.parent().is_none_or(|parent| !parent.is_dir()) {
            continue;
        }
        let content = &disk.files[file];
        if let (Some(before), []) = (content.before, &*content.changes) {
            std::fs::copy(before, &path).expect("a copy");
            continue;
        }
        let mut made =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
        let fate = match loss.spares(&name) {
            true => Fate::Kept,
            false => Fate::draw(content.changes.len() - content.synced, random),
        };
        made.write_all(&content.after(record, fate, random)).expect("written");
        File::set_permissions(&made, std::fs::Permissions::from_mode(content.mode)).expect("a mode");
    }
}

impl<'a> Disk<'a> {
    fn before(record: &'a Record) -> Self {
        let mut disk = Self::default();
        for Before { path, file } in record.before() {
            let id = file.as_ref().map(|file| {
                let before = Some(&*file.copy);
                disk.files.push(Content { mode: file.mode, before, ..Content::default() });
                disk.numbers.insert(file.number, disk.files.len() - 1);
                disk.files.len() - 1
            });
            disk.before.insert(path.clone(), id);
        }
        disk
    }

    fn take(&mut self, change: &'a Change, loss: Loss<'_>) {
        match change {
            Change::Write { file, .. } | Change::Truncate { file, .. } => {
                // The test's own file, the log that the server writes to, was there before.
                let Some(id) = self.numbers.get(file) else { return };
                self.files[*id].changes.push(change);
            }
            Change::Create { file, mode, path } => {
                let id = self.files.len();
                self.files.push(Content { mode: *mode, ..Content::default() });
                self.numbers.insert(*file, id);
                self.entries.push((change, Some(id), loss.spares(path)));
            }
            Change::Rename { to: path, .. }
            | Change::Unlink { path }
            | Change::MakeDirectory { path }
            | Change::Link { to: path, .. } => self.entries.push((change, None, loss.spares(path))),
            Change::SyncBegins { sync, file, path } => {
                let covered = match self.numbers.get(file) {
                    Some(id) if loss.lies.is_some_and(|lies| path.to_string_lossy().contains(lies)) => {
                        Covered::File(*id, 0, 0)
                    }
                    Some(id) => {
                        let names = if loss.journal { self.entries.len() } else { 0 };
                        Covered::File(*id, self.files[*id].changes.len(), names)
                    }
                    None => Covered::Entries(path.clone(), self.entries.len()),
                };
                self.running.insert(*sync, covered);
            }
            Change::SyncEnds { sync } => match self.running.remove(sync) {
                Some(Covered::File(id, count, names)) => {
                    let file = &mut self.files[id];
                    file.synced = file.synced.max(count);
                    self.entries[..names].iter_mut().for_each(|(_, _, synced)| *synced = true);
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
        let mut paths = self.before.clone();
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
    fn after(&self, record: &Record, fate: Fate, random: &mut StdRng) -> Vec<u8> {
        let before = self.before.map(|before| std::fs::read(before).expect("a file"));
        let mut bytes = before.unwrap_or_default();
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
