//! Single pages of bbolt's files.

use crate::Error;

/// The length of a page's header: its id, flags, number of elements, and number of overflow pages.
pub const PAGE_HEADER: usize = 16;
/// The length of a meta, behind the header of its page.
pub const META_SIZE: usize = 64;
/// The length of an element of a branch and of a leaf, both of 16 bytes.
pub const ELEMENT: usize = 16;
/// The length of the head of a bucket: its root page and a sequence.
const BUCKET_HEADER: usize = 16;

pub const MAGIC: u32 = 0xED0C_DAED;
pub const VERSION: u32 = 2;
pub const BRANCH: u16 = 1;
pub const LEAF: u16 = 2;
pub const META: u16 = 4;
/// The flag of a leaf's element whose value is a bucket.
pub const BUCKET: u32 = 1;

/// The state of a file after a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub page_size: usize,
    /// The page of the bucket that holds the buckets.
    pub root: u64,
    /// The number of pages of the file that are in use.
    pub pages: u64,
    pub transaction: u64,
}

impl Meta {
    /// Parses a meta; `None` if it was not written completely.
    pub fn parse(bytes: &[u8; META_SIZE]) -> Option<Self> {
        let checksum = u64_at(bytes, 56)?;
        if u32_at(bytes, 0)? != MAGIC || u32_at(bytes, 4)? != VERSION || fnv_1a(&bytes[..56]) != checksum {
            return None;
        }
        Some(Self {
            page_size: u32_at(bytes, 8)? as usize,
            root: u64_at(bytes, 16)?,
            pages: u64_at(bytes, 40)?,
            transaction: u64_at(bytes, 48)?,
        })
    }
}

/// The hash FNV-1a with 64 bits.
pub fn fnv_1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// A bucket as its value in another one tells.
pub struct Bucket {
    pub root: u64,
    /// The only page of a small bucket, which has no page of the file.
    pub inline: Option<Vec<u8>>,
}

impl Bucket {
    pub fn parse(mut value: Vec<u8>) -> Result<Self, Error> {
        let short = || Error::Damaged("a bucket is too short".to_owned());
        let root = u64_at(&value, 0).filter(|_| value.len() >= BUCKET_HEADER).ok_or_else(short)?;
        let inline = (root == 0).then(|| value.split_off(BUCKET_HEADER));
        Ok(Self { root, inline })
    }
}

/// A key with its value.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub is_bucket: bool,
}

/// A page of a tree, with its overflow.
pub struct Page {
    id: u64,
    bytes: Vec<u8>,
    is_leaf: bool,
    count: usize,
}

impl Page {
    pub fn parse(id: u64, bytes: Vec<u8>) -> Result<Self, Error> {
        let damaged = |why: &str| Error::Damaged(format!("page {id} {why}"));
        let head = u64_at(&bytes, 0).zip(u16_at(&bytes, 8)).zip(u16_at(&bytes, 10));
        let ((own_id, flags), count) = head.ok_or_else(|| damaged("is too short"))?;
        if own_id != id {
            return Err(damaged("has the number of another one"));
        }
        let is_leaf = match flags {
            LEAF => true,
            BRANCH => false,
            _ => return Err(damaged("is neither a branch nor a leaf")),
        };
        let count = usize::from(count);
        if PAGE_HEADER + count * ELEMENT > bytes.len() {
            return Err(damaged("has more elements than fit in it"));
        }
        Ok(Self { id, bytes, is_leaf, count })
    }

    pub fn is_leaf(&self) -> bool {
        self.is_leaf
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The entry of an element of a leaf.
    pub fn entry(&self, at: usize) -> Result<Entry, Error> {
        let place = PAGE_HEADER + at * ELEMENT;
        let number = |offset| u32_at(&self.bytes, place + offset).ok_or_else(|| self.outside(at));
        let (flags, start, key, value) = (number(0)?, number(4)?, number(8)?, number(12)?);
        let start = place + start as usize;
        let middle = start + key as usize;
        let part = |from: usize, to: usize| self.bytes.get(from..to).ok_or_else(|| self.outside(at));
        Ok(Entry {
            key: part(start, middle)?.to_vec(),
            value: part(middle, middle + value as usize)?.to_vec(),
            is_bucket: flags & BUCKET != 0,
        })
    }

    /// The page that an element of a branch points to.
    pub fn child(&self, at: usize) -> Result<u64, Error> {
        u64_at(&self.bytes, PAGE_HEADER + at * ELEMENT + 8).ok_or_else(|| self.outside(at))
    }

    fn outside(&self, at: usize) -> Error {
        Error::Damaged(format!("element {at} of page {} is outside of it", self.id))
    }
}

/// The number of overflow pages behind the page with this header.
pub fn overflow(header: &[u8; PAGE_HEADER]) -> u32 {
    u32_at(header, 12).unwrap_or_default()
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    chunk(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    chunk(bytes, at).map(u64::from_le_bytes)
}
