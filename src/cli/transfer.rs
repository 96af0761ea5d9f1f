//! `rowplane backup`, `rowplane restore` and `rowplane migrate`: move a whole store into a file, out of one, or into
//! another database.

pub mod check;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::keys::Keys;
use super::output::OutputArgs;
use super::progress::Progress;
use crate::revision::Revision;
use crate::server::data_dir;
use crate::server::datastore::Datastore;
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;
use crate::storage::transfer::{Counts, Export, Meter};
use crate::storage::{Upkeep as _, backup as format};
use crate::tree::{Map, Value, json};

/// The size of the buffer for reading and writing files.
const FILE_BUFFER: usize = 1 << 20;

/// The result of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The revision of the state that was moved.
    pub revision: Revision,
    pub objects: Counts,
}

/// Writes the newest state of a store to a file. The file gets its name only once it is complete and durable.
pub async fn backup(datastore: &Datastore, path: &Path, keys: Keys) -> Result<Summary, Error> {
    let shown = Progress::show("backup");
    let export = keys.seal(export(datastore).await?);
    let revision = export.revision;
    let failed = |source| Error::BackupFile { path: path.to_owned(), source };
    let partial = Partial::create(path).map_err(failed)?;
    let out = BufWriter::with_capacity(FILE_BUFFER, &partial.file);
    let objects = format::write(export, out, shown.meter()).await?.map_err(failed)?;
    partial.publish(path).map_err(failed)?;
    Ok(Summary { revision, objects })
}

/// Fills a new store from a file. If the file is damaged, the store stays empty.
pub async fn restore(path: &Path, datastore: &Datastore) -> Result<Summary, Error> {
    let failed = |source| Error::BackupFile { path: path.to_owned(), source };
    let open = || File::open(path).map_err(failed);
    let file = open()?;
    let length = file.metadata().map_err(failed)?.len();
    let export = format::read(BufReader::with_capacity(FILE_BUFFER, file), length)?;
    let shown = Progress::show("restore");
    match import(export, datastore, shown.meter()).await {
        Ok(summary) => Ok(summary),
        Err(error) => {
            // If the file is damaged, that is the error to report, whatever error the database has raised.
            format::check(BufReader::with_capacity(FILE_BUFFER, open()?))?;
            Err(error)
        }
    }
}

/// Fills a new store with the newest state of another one.
pub async fn migrate(from: &Datastore, to: &Datastore) -> Result<Summary, Error> {
    let shown = Progress::show("migrate");
    import(export(from).await?, to, shown.meter()).await
}

pub(super) async fn export(datastore: &Datastore) -> Result<Export, Error> {
    Ok(match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => Sqlite::export(path).await?,
        Datastore::Postgres(address) => Postgres::export(address).await?,
    })
}

pub(super) async fn import(export: Export, datastore: &Datastore, meter: &Meter) -> Result<Summary, Error> {
    let revision = export.revision;
    let imported = match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => {
            if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                data_dir::create(dir)?;
            }
            let store = Sqlite::open(path).await?;
            let imported = store.import(export, meter).await;
            store.close().await;
            imported
        }
        Datastore::Postgres(address) => {
            let store = Postgres::open(address).await?;
            let imported = store.import(export, meter).await;
            store.close().await;
            imported
        }
    };
    Ok(Summary { revision, objects: imported? })
}

impl Summary {
    /// Prints the number of objects of each resource.
    pub fn print(&self, output: OutputArgs) -> Result<(), Error> {
        let value = json!({"revision": self.revision.to_string(), "objects": Value::Object(self.counts())});
        output.print(&value, |_| self.text())
    }

    /// The number of objects by the names of the resources.
    pub(super) fn counts(&self) -> Map {
        self.objects.iter().map(|(resource, count)| (resource.to_string(), Value::from(*count))).collect()
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (resource, count) in &self.objects {
            text.push_str(&format!("{count:>10}  {resource}\n"));
        }
        let total: u64 = self.objects.values().sum();
        text.push_str(&format!("{total:>10}  objects at revision {}\n", self.revision));
        text
    }
}

/// A file under a temporary name, removed unless it is published. Only its owner may read it, since it contains
/// secrets.
pub(super) struct Partial {
    file: File,
    path: PathBuf,
}

impl Partial {
    pub(super) fn create(target: &Path) -> io::Result<Self> {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{:08x}.partial", rand::random::<u32>()));
        let path = PathBuf::from(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { file, path })
    }

    /// Another handle of the file.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    pub(super) fn publish(&self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)?;
        let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(dir)?.sync_all()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After publication the temporary name no longer exists.
        let _ = std::fs::remove_file(&self.path);
    }
}
