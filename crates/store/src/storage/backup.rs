//! The file format of a backup, the same for all databases.
//!
//! The file starts with a line that names the format. Records follow, each a one-byte tag and its fields. The file ends
//! with the tag `E` and the SHA-256 of all bytes before that tag. A field is its length in 4 bytes, then its content;
//! numbers are 8 bytes. All numbers are big-endian.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use futures_util::StreamExt;
use sha2::{Digest, Sha256};

use super::transfer::{Counts, Error, Export, Length, Meter, Record, Step, StoredObject};
use super::{Revision, SAFETY_GAP, TokenKey, transfer};
use crate::schema::names::GroupResource;

/// The last character before the line end is the version of the format.
const MAGIC: &[u8] = b"rowplane backup 1\n";
const REVISION: u8 = b'R';
/// Written only where the lag is not 0, since earlier releases refuse the record.
const LAG: u8 = b'L';
const TOKEN_KEY: u8 = b'K';
const OBJECT: u8 = b'O';
const END: u8 = b'E';
/// The longest field. The limit keeps a damaged length from reserving all memory.
const LONGEST_FIELD: u32 = 1 << 28;
/// Bytes of memory that are reserved for a field before its content has been read.
const RESERVED: u32 = 64 << 10;

/// Writes a store to `out` and returns the number of objects per resource.
pub async fn write(
    mut export: Export,
    out: impl Write,
    meter: &Meter,
) -> Result<Result<Counts, io::Error>, Error> {
    meter.expect(export.length);
    let mut writer = Hashing { inner: out, hash: Sha256::new() };
    let mut counts = Counts::new();
    let begun =
        writer.write_all(MAGIC).and_then(|()| record(&mut writer, REVISION, &[&number(export.revision.0)]));
    if let Err(error) = begun {
        return Ok(Err(error));
    }
    while let Some(batch) = export.batches.next().await {
        for next in batch? {
            check_record(&next)?;
            if let Err(error) = put(&mut writer, &next) {
                return Ok(Err(error));
            }
            meter.add(&next);
            if let Record::Object(object) = next {
                transfer::count(&mut counts, &object.resource);
            }
        }
    }
    meter.step(Step::Syncing);
    Ok(finish(writer).map(|()| counts))
}

/// Reads the head of a backup of `length` bytes. A thread of its own reads the records ahead of their consumer. The
/// stream of records ends without an error only if the checksum is right.
pub fn read(input: impl Read + Send + 'static, length: u64) -> Result<Export, Error> {
    let mut reader = Hashing { inner: input, hash: Sha256::new() };
    let revision = read_head(&mut reader)?;
    let records = Records { reader: Some(reader) };
    Ok(Export::of_records(revision, SAFETY_GAP, Length::Bytes(length), records))
}

/// Reads a whole backup only to find faults in it.
pub fn check(input: impl Read) -> Result<(), Error> {
    let mut reader = Hashing { inner: input, hash: Sha256::new() };
    read_head(&mut reader)?;
    Records { reader: Some(reader) }.try_for_each(|record| record.map(drop))
}

fn read_head(reader: &mut Hashing<impl Read>) -> Result<Revision, Error> {
    let mut magic = [0; MAGIC.len()];
    reader.read_exact(&mut magic).map_err(failed)?;
    if magic != MAGIC {
        return Err(Error::Damaged("it does not begin as a backup of this version does".to_owned()));
    }
    match tag(reader)? {
        REVISION => Ok(Revision(read_number(reader)?)),
        other => Err(unknown(other)),
    }
}

/// An iterator over the records of a backup. It ends after the first error.
struct Records<R> {
    reader: Option<Hashing<R>>,
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = self.reader.take()?;
        let record = next(&mut reader).transpose()?;
        if record.is_ok() {
            self.reader = Some(reader);
        }
        Some(record)
    }
}

/// Reads the next record; `None` at the end of a complete backup.
fn next(reader: &mut Hashing<impl Read>) -> Result<Option<Record>, Error> {
    let mut tag = [0];
    reader.inner.read_exact(&mut tag).map_err(failed)?;
    if tag[0] == END {
        return end(reader).map(|()| None);
    }
    reader.hash.update(tag);
    let record = match tag[0] {
        LAG => Record::Lag(read_number(reader)? as i64),
        TOKEN_KEY => Record::TokenKey(TokenKey {
            id: read_number(reader)? as u32,
            created_at: read_number(reader)? as i64,
            secret: field(reader)?,
        }),
        OBJECT => Record::Object(StoredObject {
            resource: GroupResource::new(&text(reader)?, &text(reader)?),
            namespace: text(reader)?,
            name: text(reader)?,
            revision: Revision(read_number(reader)?),
            uid: text(reader)?,
            stored_version: text(reader)?,
            value: field(reader)?,
        }),
        other => return Err(unknown(other)),
    };
    Ok(Some(record))
}

/// Reads what follows the tag `E`: the checksum of everything before that tag, and then the end of the file.
fn end(reader: &mut Hashing<impl Read>) -> Result<(), Error> {
    let computed = reader.hash.clone().finalize();
    if field(reader)? != computed[..] {
        return Err(Error::Damaged("its checksum is wrong".to_owned()));
    }
    match reader.inner.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Error::Damaged("it goes on after its end".to_owned())),
        Err(error) => Err(failed(error)),
    }
}

/// Fails if a backup cannot hold the record: a file that is written has to be read again.
fn check_record(record: &Record) -> Result<(), Error> {
    match record {
        Record::Object(object) if object.value.len() > LONGEST_FIELD as usize => Err(Error::TooLong {
            resource: object.resource.clone(),
            name: object.full_name(),
            bytes: object.value.len(),
            limit: LONGEST_FIELD as usize,
        }),
        Record::Removed(..) | Record::Reached(_) => Err(Error::Changing),
        _ => Ok(()),
    }
}

fn put(writer: &mut impl Write, next: &Record) -> io::Result<()> {
    match next {
        Record::Lag(lag) => record(writer, LAG, &[&number(*lag as u64)]),
        Record::TokenKey(key) => {
            let (id, created_at) = (number(key.id.into()), number(key.created_at as u64));
            record(writer, TOKEN_KEY, &[&id, &created_at, &key.secret])
        }
        Record::Object(object) => record(
            writer,
            OBJECT,
            &[
                object.resource.group.as_bytes(),
                object.resource.plural.as_bytes(),
                object.namespace.as_bytes(),
                object.name.as_bytes(),
                &number(object.revision.0),
                object.uid.as_bytes(),
                object.stored_version.as_bytes(),
                &object.value,
            ],
        ),
        // `check_record` has refused them.
        Record::Removed(..) | Record::Reached(_) => Ok(()),
    }
}

fn record(writer: &mut impl Write, tag: u8, fields: &[&[u8]]) -> io::Result<()> {
    writer.write_all(&[tag])?;
    for field in fields {
        let length = u32::try_from(field.len()).map_err(|_| io::Error::from(ErrorKind::FileTooLarge))?;
        writer.write_all(&length.to_be_bytes())?;
        writer.write_all(field)?;
    }
    Ok(())
}

fn finish(mut writer: Hashing<impl Write>) -> io::Result<()> {
    let digest = writer.hash.clone().finalize();
    record(&mut writer, END, &[&digest[..]])?;
    writer.inner.flush()
}

fn number(value: u64) -> [u8; 8] {
    value.to_be_bytes()
}

fn tag(reader: &mut impl Read) -> Result<u8, Error> {
    let mut tag = [0];
    reader.read_exact(&mut tag).map_err(failed)?;
    Ok(tag[0])
}

fn field(reader: &mut impl Read) -> Result<Vec<u8>, Error> {
    let mut length = [0; 4];
    reader.read_exact(&mut length).map_err(failed)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST_FIELD {
        return Err(Error::Damaged(format!("a field of {length} bytes")));
    }
    // The buffer grows as bytes arrive, so that a damaged length costs no more memory than the file has bytes.
    let mut bytes = Vec::with_capacity(length.min(RESERVED) as usize);
    reader.take(length.into()).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() < length as usize {
        return Err(failed(ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

fn read_number(reader: &mut impl Read) -> Result<u64, Error> {
    let bytes = field(reader)?.try_into().map_err(|_| Error::Damaged("a number is cut".to_owned()))?;
    Ok(u64::from_be_bytes(bytes))
}

fn text(reader: &mut impl Read) -> Result<String, Error> {
    String::from_utf8(field(reader)?).map_err(|_| Error::Damaged("a name is not UTF-8".to_owned()))
}

fn unknown(tag: u8) -> Error {
    Error::Damaged(format!("a record of kind {tag:#04x}"))
}

fn failed(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::Damaged("it ends too early".to_owned()),
        _ => Error::Read(Arc::new(error)),
    }
}

/// Hashes all bytes that pass through it.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.update(&bytes[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn object(name: &str, value: &[u8]) -> Record {
        Record::Object(StoredObject {
            resource: GroupResource::new("apps", "deployments"),
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            revision: Revision(7),
            uid: "u".to_owned(),
            stored_version: "apps/v1".to_owned(),
            value: value.to_vec(),
        })
    }

    fn records() -> Vec<Record> {
        let key = TokenKey { id: 3, created_at: -1, secret: vec![0, 255] };
        vec![Record::Lag(-7), Record::TokenKey(key), object("a", b"{}"), object("b", b"\xff no JSON")]
    }

    fn export(
        batches: impl IntoIterator<Item = Result<Vec<Record>, Error>, IntoIter: Send + 'static>,
    ) -> Export {
        let batches = Box::pin(stream::iter(batches));
        Export { revision: Revision(9), gap: SAFETY_GAP, length: Length::Objects(2), batches }
    }

    async fn written() -> Vec<u8> {
        let mut file = Vec::new();
        let counts = write(export([Ok(records())]), &mut file, &Meter::default()).await;
        let counts = counts.expect("records").expect("written");
        assert_eq!(counts, Counts::from([(GroupResource::new("apps", "deployments"), 2)]));
        file
    }

    async fn read_all(file: &[u8]) -> Result<(Revision, Vec<Record>), Error> {
        let checked = check(file);
        let export = read(io::Cursor::new(file.to_vec()), file.len() as u64)?;
        let (revision, batches): (_, Vec<_>) = (export.revision, export.batches.collect().await);
        let batches = batches.into_iter().collect::<Result<Vec<_>, _>>();
        assert_eq!(
            checked.map_err(|e| e.to_string()).err(),
            batches.as_ref().map_err(|e| e.to_string()).err()
        );
        Ok((revision, batches?.concat()))
    }

    #[tokio::test]
    async fn what_was_written_is_read() {
        let (revision, read) = read_all(&written().await).await.expect("whole");
        assert_eq!((revision, read), (Revision(9), records()));
    }

    /// A progress bar relies on this.
    #[tokio::test]
    async fn records_are_as_long_as_the_meter_says() {
        let (file, meter) = (written().await, Meter::default());
        records().iter().for_each(|record| meter.add(record));
        meter.expect(Length::Bytes(file.len() as u64));
        // Everything that is not a record: the head, and at the end a tag, a length and a digest.
        let around = MAGIC.len() + 1 + 4 + 8 + 1 + 4 + 32;
        assert_eq!(meter.share(), Some(((file.len() - around) as u64, file.len() as u64)));
        assert_eq!(meter.objects(), 2);
    }

    #[tokio::test]
    async fn any_damage_is_noticed() {
        let file = written().await;
        for cut in 0..file.len() {
            assert!(matches!(read_all(&file[..cut]).await, Err(Error::Damaged(_))), "cut at {cut}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(matches!(read_all(&damaged).await, Err(Error::Damaged(_))), "byte {at}");
        }
        let longer = [&file[..], b"x"].concat();
        assert!(matches!(read_all(&longer).await, Err(Error::Damaged(_))));
    }

    /// The values are as long as the reader accepts, and one byte longer.
    #[tokio::test]
    async fn no_backup_is_written_that_could_not_be_read() {
        let write = async |length: usize| {
            let record = object("long", &vec![0; length]);
            write(export([Ok(vec![record])]), io::sink(), &Meter::default()).await
        };
        let limit = LONGEST_FIELD as usize;
        assert!(write(limit).await.is_ok());
        let refused = write(limit + 1).await.expect_err("refused").to_string();
        assert!(refused.starts_with("deployments.apps \"ns/long\" has 268435457 bytes"), "{refused}");
    }

    #[tokio::test]
    async fn a_store_that_breaks_off_is_no_backup() {
        let broken = Err(Error::Store(crate::storage::Error::Unavailable("gone".into())));
        let mut file = Vec::new();
        let written = write(export([Ok(records()), broken]), &mut file, &Meter::default()).await;
        assert!(matches!(written, Err(Error::Store(_))));
        assert!(read_all(&file).await.is_err());
    }
}
