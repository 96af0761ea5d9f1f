//! The file format of bbolt, etcd's database: a B+ tree of pages, of which values may be trees themselves (buckets).
//!
//! A page has a header of 16 bytes and then elements, which point to their keys and values in the rest of the page. A
//! page with more than fits goes on in the pages behind it (overflow). Numbers are little-endian. The first two pages
//! are metas, written in turns; the valid one with the higher transaction is the state of the file.

mod page;
pub mod writer;

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use self::page::{Bucket, Entry, META_SIZE, Meta, PAGE_HEADER, Page};
use crate::Error;

/// The smallest and the largest size of a page that bbolt uses or a file may claim.
const PAGE_SIZES: [usize; 8] = [1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16];
/// The most bytes of a page with its overflow. The limit keeps a damaged number from reserving all memory.
const LONGEST_PAGE: u64 = 1 << 28;
/// The most levels of a tree. Each page of a branch has two children at least, so no file needs more.
const DEEPEST: usize = 64;
/// The length of the checksum behind a file of `etcdctl snapshot save`.
const CHECKSUM: u64 = 32;
const SECTOR: u64 = 512;

/// A database that is open for reading.
pub struct Database {
    file: File,
    meta: Meta,
}

impl Database {
    /// Opens a database, and verifies the checksum behind it if there is one.
    pub fn open(mut file: File) -> Result<Self, Error> {
        let length = file.metadata()?.len();
        let is_snapshot = length % SECTOR == CHECKSUM;
        let length = if is_snapshot { length - CHECKSUM } else { length };
        let meta = newest_meta(&file, length)?;
        if meta.pages.checked_mul(meta.page_size as u64).is_none_or(|pages| pages > length) {
            return Err(Error::Format("it is truncated"));
        }
        if is_snapshot {
            verify_checksum(&mut file, length)?;
        }
        Ok(Self { file, meta })
    }

    /// The entries of a bucket, in the order of their keys; `None` if there is no such bucket.
    pub fn bucket(self: &Arc<Self>, name: &[u8]) -> Result<Option<Entries>, Error> {
        for entry in Entries::new(self.clone(), Bucket { root: self.meta.root, inline: None })? {
            let entry = entry?;
            if entry.is_bucket && entry.key == name {
                return Entries::new(self.clone(), Bucket::parse(entry.value)?).map(Some);
            }
        }
        Ok(None)
    }

    fn page(&self, id: u64) -> Result<Page, Error> {
        let outside = || Error::Damaged(format!("page {id} is outside of the file"));
        let size = self.meta.page_size as u64;
        let place = id.checked_mul(size).filter(|_| id < self.meta.pages).ok_or_else(outside)?;
        let mut header = [0; PAGE_HEADER];
        self.file.read_exact_at(&mut header, place)?;
        let pages = 1 + u64::from(page::overflow(&header));
        if pages > self.meta.pages - id {
            return Err(outside());
        }
        let length = pages * size;
        if length > LONGEST_PAGE {
            return Err(Error::Damaged(format!("page {id} has {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, place)?;
        Page::parse(id, bytes)
    }
}

/// The meta of the newest transaction that was written completely.
fn newest_meta(file: &File, length: u64) -> Result<Meta, Error> {
    let read = |place: usize| {
        let mut bytes = [0; META_SIZE];
        if place as u64 + META_SIZE as u64 > length {
            return None;
        }
        file.read_exact_at(&mut bytes, place as u64).ok()?;
        Meta::parse(&bytes).filter(|meta| PAGE_SIZES.contains(&meta.page_size))
    };
    let first = read(PAGE_HEADER);
    // If the first meta is not valid, nothing tells the size of a page, so that the second one may be at any of them.
    let sizes = first.as_ref().map_or(&PAGE_SIZES[..], |first| {
        PAGE_SIZES.iter().position(|size| *size == first.page_size).map_or(&[][..], |at| &PAGE_SIZES[at..=at])
    });
    let second =
        sizes.iter().find_map(|size| read(size + PAGE_HEADER).filter(|meta| meta.page_size == *size));
    let newest = [first, second].into_iter().flatten().max_by_key(|meta| meta.transaction);
    newest.ok_or(Error::Format("it does not begin as bbolt's files do"))
}

fn verify_checksum(file: &mut File, length: u64) -> Result<(), Error> {
    let mut hash = Sha256::new();
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 1 << 20];
    let mut content = file.by_ref().take(length);
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    let mut expected = [0; CHECKSUM as usize];
    file.read_exact_at(&mut expected, length)?;
    if hash.finalize().as_slice() == expected {
        Ok(())
    } else {
        Err(Error::Damaged("its checksum is not that of its content".to_owned()))
    }
}

/// An iterator over the entries of one bucket. It ends after the first error.
pub struct Entries {
    database: Arc<Database>,
    /// The pages from the root to the present leaf, each with the number of its next element.
    path: Vec<(Page, usize)>,
    /// How many pages may still be read. A file in which pages refer to each other in a circle uses them up.
    pages_left: u64,
}

impl Entries {
    fn new(database: Arc<Database>, bucket: Bucket) -> Result<Self, Error> {
        let root = match bucket.inline {
            Some(bytes) => Page::parse(0, bytes)?,
            None => database.page(bucket.root)?,
        };
        let pages_left = database.meta.pages;
        Ok(Self { database, path: vec![(root, 0)], pages_left })
    }

    fn descend(&mut self, child: u64) -> Result<(), Error> {
        if self.path.len() >= DEEPEST || self.pages_left == 0 {
            return Err(Error::Damaged("its pages refer to each other in a circle".to_owned()));
        }
        self.pages_left -= 1;
        self.path.push((self.database.page(child)?, 0));
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<Entry>, Error> {
        while let Some((page, next)) = self.path.last_mut() {
            let at = *next;
            *next += 1;
            if at >= page.count() {
                self.path.pop();
            } else if page.is_leaf() {
                return page.entry(at).map(Some);
            } else {
                let child = page.child(at)?;
                self.descend(child)?;
            }
        }
        Ok(None)
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if matches!(next, Some(Err(_))) {
            self.path.clear();
        }
        next
    }
}

#[cfg(test)]
mod tests;
