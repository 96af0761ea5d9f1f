//! The file of a backup, the same for both databases.
//!
//! A line that names the format, then records, each a tag and its fields, then the tag `E` and the SHA-256 of all
//! bytes before it. A field is its length, 4 bytes, and its bytes; numbers are 8 bytes; all of it big-endian.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};

use super::transfer::{Counts, Error, Export, Record, StoredObject};
use super::{Revision, TokenKey};
use crate::schema::names::GroupResource;

/// The last character is the version.
const MAGIC: &[u8] = b"rowplane backup 1\n";
const REVISION: u8 = b'R';
const TOKEN_KEY: u8 = b'K';
const OBJECT: u8 = b'O';
const END: u8 = b'E';
/// No value is as long; a damaged length must not take all memory.
const LONGEST_FIELD: u32 = 1 << 28;

/// Writes a store to `out`. Says how many objects there were.
pub async fn write(mut export: Export, out: impl Write) -> Result<Result<Counts, io::Error>, Error> {
    let mut writer = Hashing { inner: out, hash: Sha256::new() };
    let mut counts = Counts::new();
    let begun =
        writer.write_all(MAGIC).and_then(|()| record(&mut writer, REVISION, &[&number(export.revision.0)]));
    if let Err(error) = begun {
        return Ok(Err(error));
    }
    while let Some(next) = export.records.next().await {
        let next = next?;
        if let Err(error) = put(&mut writer, &next) {
            return Ok(Err(error));
        }
        if let Record::Object(object) = next {
            *counts.entry(object.resource).or_default() += 1;
        }
    }
    Ok(finish(writer).map(|()| counts))
}

/// Reads the head of a backup; the records are read as they are asked for. They end without an error only if the
/// checksum is right.
pub fn read(input: impl Read + Send + 'static) -> Result<Export, Error> {
    let mut reader = Hashing { inner: input, hash: Sha256::new() };
    let mut magic = [0; MAGIC.len()];
    reader.read_exact(&mut magic).map_err(failed)?;
    if magic != MAGIC {
        return Err(Error::Damaged("it does not begin as a backup of this version does".to_owned()));
    }
    let revision = match tag(&mut reader)? {
        REVISION => Revision(read_number(&mut reader)?),
        other => return Err(unknown(other)),
    };
    let records = stream::iter(Records { reader: Some(reader) });
    Ok(Export { revision, records: Box::pin(records) })
}

/// The records of a backup; ends after an error.
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

/// `None` at the end of a backup that is whole.
fn next(reader: &mut Hashing<impl Read>) -> Result<Option<Record>, Error> {
    let computed = reader.hash.clone().finalize();
    let record = match tag(reader)? {
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
        END => {
            if field(reader)? != computed[..] {
                return Err(Error::Damaged("its checksum is wrong".to_owned()));
            }
            return match reader.inner.read(&mut [0]) {
                Ok(0) => Ok(None),
                Ok(_) => Err(Error::Damaged("it goes on after its end".to_owned())),
                Err(error) => Err(failed(error)),
            };
        }
        other => return Err(unknown(other)),
    };
    Ok(Some(record))
}

fn put(writer: &mut impl Write, next: &Record) -> io::Result<()> {
    match next {
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
    // Grows as bytes arrive, so that a damaged length costs no more memory than the file has bytes.
    let mut bytes = Vec::new();
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

/// Hashes all that passes.
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
        vec![Record::TokenKey(key), object("a", b"{}"), object("b", b"\xff no JSON")]
    }

    async fn written() -> Vec<u8> {
        let records = stream::iter(records().into_iter().map(Ok));
        let mut file = Vec::new();
        let counts = write(Export { revision: Revision(9), records: Box::pin(records) }, &mut file).await;
        let counts = counts.expect("records").expect("written");
        assert_eq!(counts, Counts::from([(GroupResource::new("apps", "deployments"), 2)]));
        file
    }

    async fn read_all(file: &[u8]) -> Result<(Revision, Vec<Record>), Error> {
        let export = read(io::Cursor::new(file.to_vec()))?;
        let records: Vec<_> = export.records.collect().await;
        Ok((export.revision, records.into_iter().collect::<Result<_, _>>()?))
    }

    #[tokio::test]
    async fn what_was_written_is_read() {
        let (revision, read) = read_all(&written().await).await.expect("whole");
        assert_eq!((revision, read), (Revision(9), records()));
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

    #[tokio::test]
    async fn a_store_that_breaks_off_is_no_backup() {
        let broken = Err(Error::Store(crate::storage::Error::Unavailable("gone".into())));
        let records = stream::iter(records().into_iter().map(Ok).chain([broken]));
        let mut file = Vec::new();
        let export = Export { revision: Revision(9), records: Box::pin(records) };
        assert!(matches!(write(export, &mut file).await, Err(Error::Store(_))));
        assert!(read_all(&file).await.is_err());
    }
}
