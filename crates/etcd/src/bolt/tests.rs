use std::io::Write as _;

use super::page::{BRANCH, BUCKET, LEAF, MAGIC, META, VERSION, fnv_1a};
use super::writer::{Tree, Writer};
use super::*;

const SIZE: usize = 512;

/// A page with these elements, each the bytes of 12 behind its own place and what it points to.
fn page(id: u64, flags: u16, overflow: u32, elements: &[(u32, &[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(id.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend((elements.len() as u16).to_le_bytes());
    bytes.extend(overflow.to_le_bytes());
    let mut content = Vec::new();
    for (number, (own, key, value)) in elements.iter().enumerate() {
        let place = ((elements.len() - number) * 16 + content.len()) as u32;
        if flags == LEAF {
            for part in [*own, place, key.len() as u32, value.len() as u32] {
                bytes.extend(part.to_le_bytes());
            }
            content.extend([*key, *value].concat());
        } else {
            bytes.extend(place.to_le_bytes());
            bytes.extend((key.len() as u32).to_le_bytes());
            bytes.extend(u64::from(*own).to_le_bytes());
            content.extend_from_slice(key);
        }
    }
    bytes.extend(content);
    bytes.resize(SIZE * (1 + overflow as usize), 0);
    bytes
}

fn meta(id: u64, root: u64, pages: u64, transaction: u64) -> Vec<u8> {
    let mut bytes = page(id, META, 0, &[]);
    let mut meta = Vec::new();
    [MAGIC, VERSION, SIZE as u32, 0].iter().for_each(|part| meta.extend(part.to_le_bytes()));
    [root, 0, 2, pages, transaction].iter().for_each(|part| meta.extend(part.to_le_bytes()));
    meta.extend(fnv_1a(&meta).to_le_bytes());
    bytes[PAGE_HEADER..PAGE_HEADER + META_SIZE].copy_from_slice(&meta);
    bytes
}

fn bucket(root: u64) -> Vec<u8> {
    [root.to_le_bytes(), [0; 8]].concat()
}

/// A file with a bucket of two leaves below a branch, the second leaf with an overflow page, and an inline bucket.
fn file() -> Vec<u8> {
    let inline = [bucket(0), page(0, LEAF, 0, &[(0, b"i", b"inline")])].concat();
    let buckets = page(3, LEAF, 1, &[(BUCKET, b"small", &inline), (BUCKET, b"tree", &bucket(5))]);
    let leaf = page(6, LEAF, 0, &[(0, b"a", b"1"), (0, b"b", b"")]);
    let branch = page(5, BRANCH, 0, &[(6, b"a", b""), (7, b"c", b"")]);
    let long = page(7, LEAF, 1, &[(0, b"c", &[7; 700])]);
    [meta(0, 99, 99, 3), meta(1, 3, 9, 4), page(2, 16, 0, &[]), buckets, branch, leaf, long].concat()
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

fn open(bytes: &[u8]) -> Result<Arc<Database>, Error> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("write");
    Database::open(file).map(Arc::new)
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

fn entries(database: &Arc<Database>, name: &[u8]) -> Result<Option<Vec<Entry>>, Error> {
    let entries = database.bucket(name)?;
    entries
        .map(|entries| entries.map(|entry| entry.map(|entry| (entry.key, entry.value))).collect())
        .transpose()
}

/// Reads whatever is there.
fn read_all(bytes: &[u8]) -> Result<(), Error> {
    let database = open(bytes)?;
    for name in [&b"small"[..], b"tree"] {
        entries(&database, name)?;
    }
    Ok(())
}

#[test]
fn buckets_are_read_through_branches_overflow_and_inline() {
    for bytes in [file(), with_checksum(file())] {
        let database = open(&bytes).expect("a database");
        let tree = entries(&database, b"tree").expect("entries").expect("a bucket");
        let expected =
            [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), Vec::new()), (b"c".to_vec(), vec![7; 700])];
        assert_eq!(tree, expected);
        let small = entries(&database, b"small").expect("entries").expect("a bucket");
        assert_eq!(small, [(b"i".to_vec(), b"inline".to_vec())]);
        assert_eq!(entries(&database, b"other").expect("no error"), None);
    }
}

#[test]
fn the_older_meta_counts_if_the_newer_one_was_not_written_completely() {
    let mut bytes = file();
    let older = meta(0, 3, 9, 3);
    bytes[..SIZE].copy_from_slice(&older);
    for torn in [PAGE_HEADER, SIZE + PAGE_HEADER] {
        let mut bytes = bytes.clone();
        bytes[torn + 20] ^= 1;
        read_all(&bytes).expect("the other meta is whole");
    }
}

#[test]
fn truncated_and_foreign_files_are_refused() {
    let bytes = file();
    for length in 0..bytes.len() {
        assert!(open(&bytes[..length]).is_err(), "{length}");
    }
    for other in [&b"SQLite format 3\0"[..], &[0; 8192], &[0xff; 8192]] {
        let error = open(other).err().expect("an error").to_string();
        assert_eq!(error, "is no database of etcd: it does not begin as bbolt's files do");
    }
    let mut changed = with_checksum(bytes);
    let last = changed.len() - 40;
    changed[last] ^= 1;
    let error = open(&changed).err().expect("an error").to_string();
    assert_eq!(error, "is damaged: its checksum is not that of its content");
}

#[test]
fn a_circle_of_pages_ends() {
    let mut bytes = file();
    bytes[6 * SIZE..7 * SIZE].copy_from_slice(&page(6, BRANCH, 0, &[(5, b"a", b""), (5, b"b", b"")]));
    let error = read_all(&bytes).expect_err("a circle").to_string();
    assert_eq!(error, "is damaged: its pages refer to each other in a circle");
}

/// Whatever a byte of a file is, reading it ends, and without a panic.
#[test]
fn every_damaged_byte_ends_in_entries_or_an_error() {
    let bytes = file();
    let structure = (0..2 * SIZE).chain(3 * SIZE..3 * SIZE + 64).chain(5 * SIZE..5 * SIZE + 64);
    for at in structure.chain(6 * SIZE..6 * SIZE + 64).chain(7 * SIZE..7 * SIZE + 64) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let _ = read_all(&bytes);
        }
    }
}

/// The reader reads the entries that the writer has written, with any number of levels and values of any length.
#[test]
fn what_is_written_is_read_again() {
    for count in [0, 1, 3, 60, 5000, 100_000u64] {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("db");
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("create");
        let mut writer = Writer::new(file).expect("begin");
        let value = |n: u64| vec![n as u8; if n % 50 == 7 { 9000 } else { (n % 30) as usize }];
        let mut tree = Tree::default();
        for n in 0..count {
            tree.put(&mut writer, n.to_be_bytes().to_vec(), value(n)).expect("put");
        }
        let keys = tree.finish(&mut writer).expect("a tree");
        let small = writer::Bucket::Inline(vec![(b"i".to_vec(), b"inline".to_vec())]);
        writer.finish(&[("small", small), ("tree", keys)]).expect("finish");

        let database = Arc::new(Database::open(File::open(&path).expect("open")).expect("a database"));
        assert_eq!(
            entries(&database, b"small").expect("entries"),
            Some(vec![(b"i".to_vec(), b"inline".to_vec())])
        );
        let found = entries(&database, b"tree").expect("entries").expect("a bucket");
        let expected: Vec<_> = (0..count).map(|n| (n.to_be_bytes().to_vec(), value(n))).collect();
        assert!(found == expected, "{count}");
        assert_eq!(std::fs::metadata(&path).expect("metadata").len() % SECTOR, CHECKSUM);
    }
}
