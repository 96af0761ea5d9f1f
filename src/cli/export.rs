//! `rowplane export`: writes the newest state of a store as a snapshot on which an etcd starts.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use rowplane_etcd::export::SnapshotWriter;
use rowplane_etcd::keys::{KeyMap, PREFIX};
use rowplane_etcd::releases::Release;
use rowplane_etcd::values::convert_for_kube_apiserver;

use super::args::StoreArgs;
use super::error::Error;
use super::keys::{KeyArgs, Keys};
use super::output::OutputArgs;
use super::progress::Progress;
use super::transfer::check::{LONGEST_IN_ETCD, Named, each};
use super::transfer::{self, Partial, Summary};
use crate::server::datastore::Datastore;
use crate::storage::HIDDEN_GROUP;
use crate::storage::transfer::{Error as TransferError, Export, Record, StoredObject};
use crate::tree::{Value, json};

/// Arguments of `rowplane export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file's format; `etcdutl snapshot restore` makes a data directory of an etcd-snapshot
    #[arg(long, value_name = "FORMAT")]
    format: Format,
    /// Only look whether everything can be exported, name what cannot, and write no file
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
    /// The release of the kube-apiserver that will read the snapshot, such as 1.34; kinds that it does not know are refused
    #[arg(long = "for", value_name = "RELEASE")]
    pub release: Option<Release>,
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
    if !check {
        return options.write(&datastore, &file).await?.print(output);
    }
    let (summary, refused) = options.check(&datastore).await?;
    let value = json!({
        "revision": summary.revision.to_string(),
        "objects": Value::Object(summary.counts()),
        "refused": refused.named(),
    });
    output.print(&value, |_| summary.text() + &refused.text())?;
    refused.result("exported")
}

impl Options {
    /// Makes all values that an export would have, and writes none. Returns the objects that it would have, and those
    /// that it cannot have.
    pub async fn check(&self, datastore: &Datastore) -> Result<(Summary, Named), Error> {
        let shown = Progress::show("check");
        let (keys, mut refused) = (self.keys.load().await?, Named::default());
        let export = transfer::export(datastore).await?;
        let visit = async |object: StoredObject| match self.converted(object, &keys).await {
            Ok(object) => Ok(object),
            Err(error) => {
                refused.add(error.to_string());
                Ok(None)
            }
        };
        let summary = each(export, shown.meter(), visit).await?;
        Ok((summary, refused))
    }

    /// Writes the newest state of a store to a file, which gets its name only once it is complete and durable.
    pub async fn write(&self, datastore: &Datastore, path: &Path) -> Result<Summary, Error> {
        let shown = Progress::show("export");
        let failed = |source| Error::BackupFile { path: path.to_owned(), source };
        let partial = Partial::create(path).map_err(failed)?;
        let file = partial.handle().map_err(failed)?;
        let mut snapshot = SnapshotWriter::new(file, KeyMap::new(&self.etcd_prefix)).map_err(failed)?;
        let put = async |object: StoredObject| {
            snapshot.put(&object).map_err(failed)?;
            Ok(Some(object))
        };
        let summary = each(self.open(datastore).await?, shown.meter(), put).await?;
        snapshot.finish(summary.revision.0).map_err(failed)?;
        partial.publish(path).map_err(failed)?;
        Ok(summary)
    }

    /// The objects as kube-apiserver would have written them, encrypted if there are keys.
    async fn open(&self, datastore: &Datastore) -> Result<Export, Error> {
        let keys = self.keys.load().await?;
        let export = transfer::export(datastore).await?;
        let (revision, gap, length) = (export.revision, export.gap, export.length);
        let opening = Some((self.clone(), keys, export.batches));
        let batches = futures_util::stream::unfold(opening, |opening| async move {
            let (options, keys, mut batches) = opening?;
            match options.converted_all(batches.next().await?, &keys).await {
                Ok(batch) => Some((Ok(batch), Some((options, keys, batches)))),
                Err(error) => Some((Err(error), None)),
            }
        });
        let opened = Export { revision, gap, length, batches: Box::pin(batches) };
        Ok(self.keys.load().await?.seal(opened))
    }

    async fn converted_all(
        &self,
        batch: Result<Vec<Record>, TransferError>,
        keys: &Keys,
    ) -> Result<Vec<Record>, TransferError> {
        let mut records = Vec::new();
        for record in batch? {
            // Keys of continue tokens stay behind.
            let Record::Object(object) = record else { continue };
            let converted = self.converted(object, keys).await;
            let converted = converted.map_err(|error| TransferError::Source(error.to_string()))?;
            records.extend(converted.map(Record::Object));
        }
        Ok(records)
    }

    /// An object as kube-apiserver would have written it; `None` if servers keep it for themselves, and it stays behind.
    async fn converted(&self, object: StoredObject, keys: &Keys) -> Result<Option<StoredObject>, Error> {
        if object.resource.group == HIDDEN_GROUP {
            return Ok(None);
        }
        let mut object = keys.open(object).await?;
        let converted = convert_for_kube_apiserver(&mut object);
        let length = object.value.len();
        let why = match converted {
            Err(why) => why,
            Ok(kind) => match self.release.and_then(|release| Some((release, release.lacks(&kind)?))) {
                Some((release, since)) => {
                    format!(
                        "Kubernetes {release} does not know {} {}, which is of {since}",
                        kind.api_version(),
                        kind.kind
                    )
                }
                None if length > LONGEST_IN_ETCD => {
                    format!(
                        "it has {length} bytes, and etcd takes {LONGEST_IN_ETCD}; make it smaller, or delete it"
                    )
                }
                None => return Ok(Some(object)),
            },
        };
        let (resource, name) = (&object.resource, object.full_name());
        Err(Error::Refused(format!("cannot export {resource} {name:?}: {why}")))
    }
}
