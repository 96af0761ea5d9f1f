//! A load generator for any Kubernetes API server on this machine, given a kubeconfig.
//!
//! It works in namespaces of its own, in bounded time, and removes what it made. One Markdown table per
//! scenario goes to standard output, progress to standard error. `--help` names the scenarios.

mod client;
mod definitions;
mod etcd;
mod kinds;
mod lists;
mod objects;
mod paced;
mod process;
mod reference_stream;
mod replicas;
mod report;
mod scratch;
mod soak;
mod stats;
mod tap;
mod target;
mod verbs;
mod watches;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use client::Protocol;
use process::Server;
use report::Table;
use target::Target;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

/// No scenario may take longer, whatever the server does; `soak` has this beside its own time.
const SCENARIO_LIMIT: Duration = Duration::from_secs(900);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// create, update, patch, get and list of small objects, each client waiting for its answer
    Verbs,
    /// Pods and Deployments: create, update with and without ownership, apply; not among all
    Kinds,
    /// full, paged and selective LIST of many objects, ten full LISTs at once
    Lists,
    /// many watchers of one resource, one event at a time and in bursts
    Fanout,
    /// from sending a write to its event, at a steady rate; at the second server, if there is one
    Latency,
    /// a watcher that reads nothing beside others that do
    Stalled,
    /// creates at two servers of one database, from a write at one to its event at the other, lists at the other
    Replicas,
    /// CustomResourceDefinitions of 30 KB from several clients; not among all
    Definitions,
    /// the same load for as long as --seconds says, told of as lines of JSON; not among all
    Soak,
    /// get, list and create at a steady rate, whatever else the server does; not among all
    Paced,
}

#[derive(Debug, Parser)]
#[command(about = "Load a Kubernetes API server on this machine and print what it did")]
struct Args {
    /// Whom to load; the current context's server must be a loopback address
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", required_unless_present = "serve_stream")]
    kubeconfig: Option<PathBuf>,
    /// Another server on the same database, for `replicas`, `latency` and `soak`
    #[arg(long, value_name = "FILE")]
    second_kubeconfig: Option<PathBuf>,
    /// Which scenarios to run (all by default; `replicas` only with a second server)
    #[arg(long, value_enum, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Which verbs the scenarios `verbs` and `paced` measure
    #[arg(long, value_enum, value_delimiter = ',', default_value = "create,update,patch,get,list")]
    verbs: Vec<verbs::Verb>,
    /// What the scenario `kinds` measures (everything by default)
    #[arg(long, value_enum, value_delimiter = ',')]
    work: Vec<kinds::Work>,
    /// Numbers of clients for `verbs` and `kinds`
    #[arg(long, value_delimiter = ',', default_value = "1,16,128")]
    clients: Vec<usize>,
    /// Requests per second of `paced`
    #[arg(long, default_value_t = 100)]
    rate: u64,
    /// How long each line of a table is measured
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Numbers of objects for `lists`
    #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
    objects: Vec<usize>,
    /// Numbers of Pods for `lists`
    #[arg(long, value_delimiter = ',', default_value = "10000")]
    pods: Vec<usize>,
    /// Numbers of custom objects that look like Pods for `lists`
    #[arg(long, value_delimiter = ',')]
    customs: Vec<usize>,
    /// Numbers of definitions for `definitions`
    #[arg(long, value_delimiter = ',', default_value = "1000")]
    definitions: Vec<usize>,
    /// Clients that write definitions, each on a connection of its own
    #[arg(long, default_value_t = 20)]
    definers: usize,
    /// Bytes of an object, about
    #[arg(long, default_value_t = 2048)]
    object_bytes: usize,
    /// Watchers of `fanout`
    #[arg(long, default_value_t = 1000)]
    watchers: usize,
    /// How many objects `fanout` writes at a time; kube-apiserver ends watches that fall behind in bursts
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    bursts: Vec<usize>,
    /// Bytes of the objects that `fanout` writes, about
    #[arg(long, default_value_t = 300)]
    event_bytes: usize,
    /// How many clients of `verbs` share a connection
    #[arg(long, default_value_t = 16)]
    clients_per_connection: usize,
    /// How many watchers of `fanout` share a connection
    #[arg(long, default_value_t = 100)]
    watchers_per_connection: usize,
    /// HTTP/1.1 with a connection for each client and watcher, instead of HTTP/2
    #[arg(long)]
    http1: bool,
    /// The server's process, to read its memory and processor time
    #[arg(long)]
    pid: Option<u32>,
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Measure etcd's bare puts too, with the `etcd` in this directory
    #[arg(long, value_name = "DIR")]
    etcd: Option<PathBuf>,
    /// Where etcd's data goes while it is measured (a new directory inside)
    #[arg(long, value_name = "DIR", default_value = ".")]
    etcd_data: PathBuf,
    /// Compare LIST with a hyper server that streams one ready buffer over the same TLS
    #[arg(long)]
    reference_stream: bool,
    /// Leave the objects where they are
    #[arg(long)]
    keep: bool,
    /// Be the server of --reference-stream, for this many bytes
    #[arg(long, hide = true)]
    serve_stream: Option<usize>,
    #[command(flatten)]
    soak: soak::SoakArgs,
}

/// What every scenario needs.
struct Context {
    args: Args,
    target: Arc<Target>,
    second: Option<Arc<Target>>,
    protocol: Protocol,
    server: Server,
}

impl Context {
    fn seconds(&self) -> Duration {
        Duration::from_secs(self.args.seconds)
    }

    /// How many clients share a connection, if `shared` may.
    fn sharing(&self, shared: usize) -> usize {
        match self.protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 => shared.max(1),
        }
    }
}

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads.max(1))
        .enable_all()
        .build()
        .expect("a runtime");
    let run = runtime.spawn(run(args));
    match runtime.block_on(run) {
        Ok(Ok(())) => std::process::ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("loadgen: {error}");
            std::process::ExitCode::FAILURE
        }
        Err(panic) => {
            eprintln!("loadgen: {panic}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    if let Some(bytes) = args.serve_stream {
        return reference_stream::serve(bytes).await;
    }
    let target = Arc::new(Target::from_kubeconfig(args.kubeconfig.as_deref().expect("clap asks for it"))?);
    let second = args.second_kubeconfig.as_deref().map(Target::from_kubeconfig).transpose()?.map(Arc::new);
    let protocol = if args.http1 { Protocol::Http1 } else { Protocol::Http2 };
    let server = Server::new(args.pid);
    let context = Context { args, target, second, protocol, server };
    let mut scratch = scratch::Scratch::new(&context);
    let outcome = tokio::select! {
        outcome = scenarios(&context, &mut scratch) => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    if !context.args.keep {
        scratch.remove(&context).await?;
    }
    outcome
}

async fn scenarios(context: &Context, scratch: &mut scratch::Scratch) -> Result<()> {
    use Scenario::*;
    print_heading(context);
    let chosen: &[Scenario] = match context.args.scenario.as_slice() {
        [] if context.second.is_some() => &[Verbs, Lists, Fanout, Latency, Stalled, Replicas],
        [] => &[Verbs, Lists, Fanout, Latency, Stalled],
        chosen => chosen,
    };
    for scenario in chosen {
        let run = async {
            match scenario {
                Verbs => verbs::run(context, scratch).await,
                Kinds => kinds::run(context, scratch).await,
                Lists => lists::run(context, scratch).await,
                Fanout => watches::fanout(context, scratch).await,
                Latency => watches::latency(context, scratch).await,
                Stalled => watches::stalled(context, scratch).await,
                Replicas => replicas::run(context, scratch).await,
                Definitions => definitions::run(context, scratch).await,
                Soak => soak::run(context, scratch).await,
                Paced => paced::run(context, scratch).await,
            }
        };
        let limit = match scenario {
            Soak => SCENARIO_LIMIT + context.seconds(),
            _ => SCENARIO_LIMIT,
        };
        let tables: Vec<Table> = tokio::time::timeout(limit, run)
            .await
            .map_err(|_| format!("{scenario:?} took longer than {limit:?}"))??;
        for table in tables {
            println!("{table}");
        }
    }
    Ok(())
}

fn print_heading(context: &Context) {
    let args = &context.args;
    let protocol = match context.protocol {
        Protocol::Http1 => "HTTP/1.1, a connection each".to_owned(),
        Protocol::Http2 => format!(
            "HTTP/2, {} clients or {} watchers a connection",
            args.clients_per_connection, args.watchers_per_connection
        ),
    };
    println!("{}: {protocol}, {} generator thread(s)\n", context.target.authority(), args.threads);
}
