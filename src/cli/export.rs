//! `rowplane export`: writes the newest state of a store as a snapshot on which an etcd starts.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use rowplane_etcd::export::SnapshotWriter;
use rowplane_etcd::keys::{KeyMap, PREFIX};
use rowplane_etcd::values::convert_for_kube_apiserver;

use super::args::StoreArgs;
use super::error::Error;
use super::keys::{KeyArgs, Keys};
use super::output::OutputArgs;
use super::progress::Progress;
use super::transfer::{self, Partial, Summary};
use crate::server::datastore::Datastore;
use crate::storage::HIDDEN_GROUP;
use crate::storage::transfer::{Counts, Error as TransferError, Export, Meter, Record, StoredObject};

/// etcd's default of `--max-request-bytes`: no longer object can be changed there.
const ETCD_LIMIT: usize = 1_572_864;

/// Arguments of `rowplane export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file's format; `etcdutl snapshot restore` makes a data directory of an etcd-snapshot
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// Only look whether everything can be exported, and write no file
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// How a cluster is exported.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The value that kube-apiserver's flag --etcd-prefix will have
    #[arg(long, value_name = "PREFIX", default_value = PREFIX)]
    pub etcd_prefix: String,
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// The format of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A file as `etcdctl snapshot save` writes it
    EtcdSnapshot,
}

/// Exports a cluster, or only looks at it, and prints what it consists of.
pub async fn run(arguments: ExportArgs) -> Result<(), Error> {
    let ExportArgs { file, format: Format::EtcdSnapshot, check, options, output, store } = arguments;
    let datastore = store.datastore()?;
    let summary =
        if check { options.check(&datastore).await? } else { options.write(&datastore, &file).await? };
    summary.print(output)
}

impl Options {
    /// Makes all values that an export would have, and writes none.
    pub async fn check(&self, datastore: &Datastore) -> Result<Summary, Error> {
        let shown = Progress::show("check");
        let export = self.open(datastore).await?;
        let revision = export.revision;
        let objects = each(export, shown.meter(), |_| Ok(())).await?;
        Ok(Summary { revision, objects })
    }

    /// Writes the newest state of a store to a file, which gets its name only once it is complete and durable.
    pub async fn write(&self, datastore: &Datastore, path: &Path) -> Result<Summary, Error> {
        let shown = Progress::show("export");
        let export = self.open(datastore).await?;
        let revision = export.revision;
        let failed = |source| Error::BackupFile { path: path.to_owned(), source };
        let partial = Partial::create(path).map_err(failed)?;
        let file = partial.handle().map_err(failed)?;
        let mut snapshot = SnapshotWriter::new(file, KeyMap::new(&self.etcd_prefix)).map_err(failed)?;
        let put = |object: &StoredObject| snapshot.put(object).map_err(failed);
        let objects = each(export, shown.meter(), put).await?;
        snapshot.finish(revision.0).map_err(failed)?;
        partial.publish(path).map_err(failed)?;
        Ok(Summary { revision, objects })
    }

    /// The objects as kube-apiserver would have written them, encrypted if there are keys.
    async fn open(&self, datastore: &Datastore) -> Result<Export, Error> {
        let keys = self.keys.load().await?;
        let export = transfer::export(datastore).await?;
        let (revision, gap, length) = (export.revision, export.gap, export.length);
        let opening = Some((keys, export.batches));
        let batches = futures_util::stream::unfold(opening, |opening| async move {
            let (keys, mut batches) = opening?;
            match opened(batches.next().await?, &keys).await {
                Ok(batch) => Some((Ok(batch), Some((keys, batches)))),
                Err(error) => Some((Err(error), None)),
            }
        });
        let opened = Export { revision, gap, length, batches: Box::pin(batches) };
        Ok(self.keys.load().await?.seal(opened))
    }
}

/// Opens the objects of a batch. Those that servers keep for themselves, and keys of continue tokens, stay behind.
async fn opened(
    batch: Result<Vec<Record>, TransferError>,
    keys: &Keys,
) -> Result<Vec<Record>, TransferError> {
    let mut records = Vec::new();
    for record in batch? {
        let Record::Object(object) = record else { continue };
        if object.resource.group == HIDDEN_GROUP {
            continue;
        }
        let refused = |error: Error| TransferError::Source(error.to_string());
        let mut object = keys.open(object).await.map_err(refused)?;
        let name = format!("{} {:?}", object.resource, object.full_name());
        convert_for_kube_apiserver(&mut object)
            .map_err(|why| TransferError::Source(format!("cannot export {name}: {why}")))?;
        if object.value.len() > ETCD_LIMIT {
            let (found, limit) = (object.value.len(), ETCD_LIMIT);
            let why = format!("has {found} bytes, and etcd takes {limit}; make it smaller, or delete it");
            return Err(TransferError::Source(format!("cannot export {name}: it {why}")));
        }
        records.push(Record::Object(object));
    }
    Ok(records)
}

/// Gives each object to `put`, and counts it.
async fn each(
    mut export: Export,
    meter: &Meter,
    mut put: impl FnMut(&StoredObject) -> Result<(), Error>,
) -> Result<Counts, Error> {
    meter.expect(export.length);
    let mut objects = Counts::new();
    while let Some(batch) = export.batches.next().await {
        for record in batch? {
            meter.add(&record);
            let Record::Object(object) = record else { continue };
            put(&object)?;
            *objects.entry(object.resource).or_default() += 1;
        }
    }
    Ok(objects)
}
