//! `rowplane import`: fills a new store with a cluster that another API server has kept in etcd.

mod claims;
mod findings;
mod live;
mod records;
mod source;

use clap::Args;
use rowplane_etcd::keys::PREFIX;

pub use self::findings::Findings;
pub use self::live::LiveArgs;
use self::source::Source;
use super::args::StoreArgs;
use super::error::Error;
use super::keys::KeyArgs;
use super::output::OutputArgs;
use super::progress::Progress;
use super::transfer::{self, Summary};
use crate::server::datastore::Datastore;
use crate::tree::{Map, Value, json};

/// Arguments of `rowplane import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    origin: Origin,
    /// Only look whether everything can be imported, and fill no store
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// The cluster to import.
#[derive(Clone, Debug, Args)]
pub struct Origin {
    /// The cluster: a file of `etcdctl snapshot save`, the data directory of an etcd that has been stopped, kine's
    /// database as kine:sqlite:PATH or kine:postgres://USER@HOST/DATABASE, or a running etcd or kine as etcd://HOST:PORT,
    /// https://HOST:PORT or unix:///PATH, several with commas between
    #[arg(long, value_name = "SOURCE")]
    pub from: String,
    /// The value of kube-apiserver's flag --etcd-prefix
    #[arg(long, value_name = "PREFIX", default_value = PREFIX)]
    pub etcd_prefix: String,
    /// How far revisions jump ahead of the newest one of the source, which may have gone on since [default: 1000000, or 0
    /// with --follow]
    #[arg(long, value_name = "REVISIONS")]
    pub bump_revision: Option<u64>,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// Objects that have been imported, or can be, and what the source has besides.
#[derive(Debug)]
pub struct Imported {
    pub summary: Summary,
    pub findings: Findings,
}

impl Origin {
    /// Reads everything, and fills no store.
    pub async fn check(&self) -> Result<Imported, Error> {
        let shown = Progress::show("check");
        let source = Source::open(self).await?;
        let found = source.found.clone();
        let keys = self.keys.load().await?;
        let summary = source::check(source.export()?, &keys, &found, shown.meter()).await?;
        Ok(Imported { summary, findings: found.findings() })
    }

    /// Fills a new store. If anything cannot be read, the store stays empty.
    pub async fn import(&self, datastore: &Datastore) -> Result<Imported, Error> {
        let shown = Progress::show("import");
        let source = Source::open(self).await?;
        let found = source.found.clone();
        let completed = claims::completed(source.export()?, self.keys.load().await?);
        let export = self.keys.load().await?.seal(completed);
        let mut summary = transfer::import(export, datastore, shown.meter()).await?;
        let findings = found.findings();
        summary.revision = findings.reached.unwrap_or(summary.revision);
        Ok(Imported { summary, findings })
    }
}

/// Imports a cluster, or only looks at it, and prints what it consists of.
pub async fn run(arguments: ImportArgs) -> Result<(), Error> {
    let ImportArgs { origin, check, output, store } = arguments;
    let imported = if check { origin.check().await? } else { origin.import(&store.datastore()?).await? };
    print(&imported, output)
}

/// Prints the objects, and the keys that are no objects. Fails if there are objects that cannot be imported.
fn print(imported: &Imported, output: OutputArgs) -> Result<(), Error> {
    let Imported { summary, findings: Findings { left, refused, long, reached: _ } } = imported;
    let counts = left.iter().map(|(keys, count)| (keys.clone(), Value::from(*count)));
    let value = json!({
        "revision": summary.revision.to_string(),
        "objects": Value::Object(summary.counts()),
        "leftBehind": Value::Object(counts.collect::<Map>()),
        "refused": refused.named(),
        "long": long.named(),
    });
    output.print(&value, |_| {
        let mut text = summary.text();
        for (keys, count) in left {
            text.push_str(&format!("{count:>10}  keys left behind: {keys}\n"));
        }
        text.push_str(&refused.text());
        text.push_str(&long.text());
        text
    })?;
    refused.result("imported")
}
