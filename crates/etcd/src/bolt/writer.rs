//! Writes a database of bbolt from front to back: the pages of the large bucket, then everything that is small.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};

use sha2::{Digest as _, Sha256};

use super::page::{BRANCH, BUCKET, ELEMENT, LEAF, MAGIC, META, META_SIZE, PAGE_HEADER, VERSION, fnv_1a};

const PAGE: usize = 4096;
const FREELIST: u16 = 16;
/// The page of the list of free pages, which is empty.
const FREELIST_PAGE: u64 = 2;

/// A database that is written.
pub struct Writer {
    out: BufWriter<File>,
    /// The number of the next page.
    next: u64,
}

/// A bucket whose entries are written as they come, in the order of their keys.
#[derive(Default)]
pub struct Tree {
    leaf: Node,
    /// The first key of each leaf, and its page.
    leaves: Vec<(Vec<u8>, u64)>,
}

/// The elements of a page that is not full yet.
#[derive(Default)]
struct Node {
    elements: Vec<(Vec<u8>, Vec<u8>)>,
    size: usize,
}

impl Writer {
    pub fn new(mut file: File) -> io::Result<Self> {
        // The metas come last.
        file.seek(SeekFrom::Start(FREELIST_PAGE * PAGE as u64))?;
        let mut writer = Self { out: BufWriter::with_capacity(1 << 20, file), next: FREELIST_PAGE };
        writer.page(FREELIST, &[])?;
        Ok(writer)
    }

    /// Ends the file with buckets: the root page of each, or its entries if they are few, sorted by name. Adds the
    /// checksum that `etcdctl snapshot save` adds.
    pub fn finish(mut self, buckets: &[(&str, Bucket)]) -> io::Result<()> {
        let header = |root: u64| [root.to_le_bytes(), [0; 8]].concat();
        let value = |bucket: &Bucket| match bucket {
            Bucket::Tree(root) => header(*root),
            Bucket::Inline(entries) => {
                [header(0), content(0, LEAF, 0, &leaf_body(entries, 0), entries.len())].concat()
            }
        };
        let entries: Vec<_> =
            buckets.iter().map(|(name, bucket)| (name.as_bytes().to_vec(), value(bucket))).collect();
        let root = self.elements(LEAF, &leaf_body(&entries, BUCKET), entries.len())?;
        let pages = self.next;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        for transaction in [0, 1] {
            file.write_all(&meta(transaction, root, pages))?;
        }
        file.seek(SeekFrom::Start(0))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => hash.update(&buffer[..read]),
            }
        }
        file.write_all(&hash.finalize())
    }

    fn page(&mut self, flags: u16, body: &[u8]) -> io::Result<u64> {
        self.elements(flags, body, 0)
    }

    /// Writes a page with what does not fit in it behind it, and returns its number.
    fn elements(&mut self, flags: u16, body: &[u8], count: usize) -> io::Result<u64> {
        let id = self.next;
        let pages = (PAGE_HEADER + body.len()).div_ceil(PAGE);
        let mut bytes = content(id, flags, pages as u32 - 1, body, count);
        bytes.resize(pages * PAGE, 0);
        self.out.write_all(&bytes)?;
        self.next += pages as u64;
        Ok(id)
    }
}

/// The entries of a bucket.
pub enum Bucket {
    Tree(u64),
    Inline(Vec<(Vec<u8>, Vec<u8>)>),
}

impl Tree {
    pub fn put(&mut self, writer: &mut Writer, key: Vec<u8>, value: Vec<u8>) -> io::Result<()> {
        let size = ELEMENT + key.len() + value.len();
        if !self.leaf.elements.is_empty() && PAGE_HEADER + self.leaf.size + size > PAGE {
            self.end_leaf(writer)?;
        }
        self.leaf.size += size;
        self.leaf.elements.push((key, value));
        Ok(())
    }

    /// Writes the branches, and returns the bucket.
    pub fn finish(mut self, writer: &mut Writer) -> io::Result<Bucket> {
        if self.leaves.is_empty() {
            return Ok(Bucket::Inline(self.leaf.elements));
        }
        self.end_leaf(writer)?;
        let mut level = self.leaves;
        while level.len() > 1 {
            let mut above = Vec::new();
            let mut rest = &level[..];
            while !rest.is_empty() {
                let mut size = PAGE_HEADER;
                let fits = |(key, _): &&(Vec<u8>, u64)| {
                    size += ELEMENT + key.len();
                    size <= PAGE
                };
                // Two children at least, so that each level has at most half the pages of the one below.
                let count = rest.iter().take_while(fits).count().max(2).min(rest.len());
                let (page, behind) = rest.split_at(count);
                let id = writer.elements(BRANCH, &branch_body(page), page.len())?;
                above.push((page[0].0.clone(), id));
                rest = behind;
            }
            level = above;
        }
        Ok(Bucket::Tree(level.first().map_or(0, |(_, root)| *root)))
    }

    fn end_leaf(&mut self, writer: &mut Writer) -> io::Result<()> {
        let Node { elements, .. } = std::mem::take(&mut self.leaf);
        if let Some((first, _)) = elements.first() {
            let id = writer.elements(LEAF, &leaf_body(&elements, 0), elements.len())?;
            self.leaves.push((first.clone(), id));
        }
        Ok(())
    }
}

/// A page with its header, not filled up.
fn content(id: u64, flags: u16, overflow: u32, body: &[u8], count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAGE_HEADER + body.len());
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.extend_from_slice(&(count as u16).to_le_bytes());
    bytes.extend_from_slice(&overflow.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn leaf_body(entries: &[(Vec<u8>, Vec<u8>)], flags: u32) -> Vec<u8> {
    let mut body = Vec::new();
    let mut place = entries.len() * ELEMENT;
    for (number, (key, value)) in entries.iter().enumerate() {
        let from_element = place - number * ELEMENT;
        for part in [flags, from_element as u32, key.len() as u32, value.len() as u32] {
            body.extend_from_slice(&part.to_le_bytes());
        }
        place += key.len() + value.len();
    }
    for (key, value) in entries {
        body.extend_from_slice(key);
        body.extend_from_slice(value);
    }
    body
}

fn branch_body(children: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut place = children.len() * ELEMENT;
    for (number, (key, page)) in children.iter().enumerate() {
        let from_element = place - number * ELEMENT;
        for part in [from_element as u32, key.len() as u32] {
            body.extend_from_slice(&part.to_le_bytes());
        }
        body.extend_from_slice(&page.to_le_bytes());
        place += key.len();
    }
    children.iter().for_each(|(key, _)| body.extend_from_slice(key));
    body
}

fn meta(transaction: u64, root: u64, pages: u64) -> Vec<u8> {
    let mut meta = Vec::with_capacity(META_SIZE);
    for part in [MAGIC, VERSION, PAGE as u32, 0] {
        meta.extend_from_slice(&part.to_le_bytes());
    }
    for part in [root, 0, FREELIST_PAGE, pages, transaction] {
        meta.extend_from_slice(&part.to_le_bytes());
    }
    let checksum = fnv_1a(&meta);
    meta.extend_from_slice(&checksum.to_le_bytes());
    let mut bytes = content(transaction, META, 0, &meta, 0);
    bytes.resize(PAGE, 0);
    bytes
}
