//! A load that stays the same for hours: writes and lists at given rates, objects whose number does not change, and watchers
//! that come and go. What it did is one line of JSON every few seconds; `benches/soak/run` reads them.

mod counts;
mod lists;
mod pace;
mod watchers;
mod writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::report::Table;
use crate::scratch::{Collection, Scratch};
use crate::target::Target;
use crate::{Context, Result};

use counts::Counts;
use pace::Pace;

/// Objects are spread over so many namespaces.
const NAMESPACES: usize = 4;
/// A label says to which shard an object belongs; most watchers and lists select one.
const SHARDS: usize = 100;
const REPORT_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct SoakArgs {
    /// Writes per second of `soak`
    #[arg(long, default_value_t = 2000)]
    soak_writes: u32,
    /// Watchers of `soak` at any time
    #[arg(long, default_value_t = 1000)]
    soak_watchers: usize,
    /// Lists per second of `soak`
    #[arg(long, default_value_t = 200)]
    soak_lists: u32,
    /// Objects of `soak`
    #[arg(long, default_value_t = 4000)]
    soak_objects: usize,
    /// Watchers that should go stay, so that something grows
    #[arg(long)]
    soak_leak: bool,
}

/// What all clients share.
struct Soak {
    targets: Vec<Arc<Target>>,
    collections: Vec<Collection>,
    objects: usize,
    object_bytes: usize,
    leak: bool,
    /// Times in objects are counted from here.
    origin: Instant,
    writes: Pace,
    lists: Pace,
    counts: Counts,
}

impl Soak {
    /// The `n`th client's server.
    fn target(&self, n: usize) -> &Arc<Target> {
        &self.targets[n % self.targets.len()]
    }
}

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let args = &context.args.soak;
    let mut collections = Vec::new();
    for n in 0..NAMESPACES {
        collections.push(scratch.namespace(context, &format!("soak-{n}")).await?);
    }
    let soak = Arc::new(Soak {
        targets: [Some(&context.target), context.second.as_ref()].into_iter().flatten().cloned().collect(),
        collections,
        objects: args.soak_objects,
        object_bytes: context.args.object_bytes,
        leak: args.soak_leak,
        origin: Instant::now(),
        writes: Pace::new(args.soak_writes),
        lists: Pace::new(args.soak_lists),
        counts: Counts::default(),
    });
    eprintln!("creating {} objects", soak.objects);
    let writers = writes::prepare(&soak).await?;
    soak.writes.begin();
    soak.lists.begin();
    let mut clients = JoinSet::new();
    for writer in writers {
        clients.spawn(writer.work());
    }
    lists::start(&soak, &mut clients).await?;
    watchers::start(&soak, args.soak_watchers, &mut clients);
    let began = Instant::now();
    while began.elapsed() < context.seconds() {
        tokio::time::sleep(REPORT_EVERY).await;
        println!("{}", soak.counts.report(began.elapsed(), &soak.writes, &soak.lists));
        if let Some(ended) = clients.try_join_next() {
            return Err(format!("a client has ended: {ended:?}").into());
        }
    }
    clients.shutdown().await;
    Ok(Vec::new())
}
