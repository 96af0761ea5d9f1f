//! The first questions of a person: is it well, which store, how large, how many objects, who is connected, since when.

use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::Timestamp;

use super::{live_objects, versions};
use crate::cli::client::Client;
use crate::cli::error::Error;
use crate::cli::keys::KeyArgs;
use crate::cli::output::{Palette, bytes};
use crate::fields;
use crate::gotext;
use crate::kinds::behavior::columns::age;
use crate::schema::names::GroupResource;
use crate::server::datastore::Datastore;
use crate::storage::inventory::{Inventory, LongObject, ResourceHistory};
use crate::tree::{Map, Value, json};

const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
const PATIENCE: Duration = Duration::from_secs(5);

/// A store and its servers.
pub struct Overview {
    health: Health,
    store: String,
    bytes: u64,
    revision: String,
    objects: u64,
    resources: usize,
    servers: Vec<RegisteredServer>,
    /// Watches and other long requests that the server of the data directory has open.
    watches: Option<u64>,
    history: Vec<ResourceHistory>,
    now: Timestamp,
}

/// The answer of the server that wrote the data directory's kubeconfig.
#[derive(Debug, PartialEq, Eq)]
enum Health {
    Ready(String),
    NotReady(String, String),
    /// No server of this data directory runs, or it writes no kubeconfig.
    Unknown(String),
}

/// A server that is registered in the store, with the times of its lease.
struct RegisteredServer {
    id: String,
    since: Option<Value>,
    heartbeat: Option<Value>,
}

impl Overview {
    /// Asks the server of the data directory, and reads the leases of all servers.
    pub async fn collect(
        datastore: &Datastore,
        data_dir: &Path,
        inventory: &Inventory,
        keys: &KeyArgs,
    ) -> Result<Self, Error> {
        let (health, watches) = ask(&data_dir.join("admin.kubeconfig")).await;
        let counts = inventory.resources.values().map(|holdings| holdings.objects());
        let held = counts.filter(|count| *count > 0);
        let leases = GroupResource::new("coordination.k8s.io", "leases");
        let leases = live_objects(datastore, &leases, &keys.load().await?).await?;
        Ok(Self {
            health,
            store: datastore.to_string(),
            bytes: inventory.extent.bytes,
            revision: inventory.revision.to_string(),
            objects: held.clone().sum(),
            resources: held.count(),
            servers: servers(inventory, &leases),
            watches,
            history: inventory.history.clone(),
            now: Timestamp::now(),
        })
    }

    /// A line for each question.
    pub fn text(&self, palette: Palette) -> String {
        let health = match &self.health {
            Health::Ready(url) => format!("{}: {url}", palette.good("ready")),
            Health::NotReady(url, why) => format!("{}: {url}: {why}", palette.bad("not ready")),
            Health::Unknown(why) => format!("{}: {why}", palette.doubtful("unknown")),
        };
        let mut text = format!(
            "health   {health}\nstore    {}, {}\nobjects  {} of {} resources, at revision {}\n",
            self.store,
            bytes(self.bytes),
            self.objects,
            self.resources,
            self.revision
        );
        for server in &self.servers {
            text.push_str(&format!("server   {}\n", server.text(self.now)));
        }
        if self.servers.is_empty() {
            text.push_str("server   none is registered\n");
        }
        if let Some(watches) = self.watches {
            text.push_str(&format!("watches  {watches} open at this server\n"));
        }
        text + &self.history_text()
    }

    /// How much history there is, and the resource that has most of it, which is the first to lose some over the budget.
    fn history_text(&self) -> String {
        let (changes, size) = self
            .history
            .iter()
            .fold((0, 0), |(changes, size), one| (changes + one.changes, size + one.bytes));
        let oldest = self.history.iter().map(|one| one.floor.committed_ms).min();
        let largest = self.history.iter().max_by_key(|one| one.bytes);
        let (Some(oldest), Some(largest)) = (oldest, largest) else { return String::new() };
        let since = age::since(&time(oldest).into(), self.now);
        format!(
            "history  {changes} changes, about {}, back to {since} ago; most of {}: {}\n",
            bytes(size),
            largest.resource,
            bytes(largest.bytes)
        )
    }

    /// All of it for programs, with the versions at rest.
    pub fn document(&self, inventory: &Inventory, long: &[LongObject]) -> Value {
        let (status, url, message) = match &self.health {
            Health::Ready(url) => ("ready", url.as_str(), ""),
            Health::NotReady(url, why) => ("not ready", url.as_str(), why.as_str()),
            Health::Unknown(why) => ("unknown", "", why.as_str()),
        };
        let servers = self.servers.iter().map(|server| {
            json!({"name": server.id.as_str(), "since": server.since.clone(), "heartbeat": server.heartbeat.clone()})
        });
        let resources = inventory.resources.iter().map(|(resource, holdings)| {
            let stored: Vec<Value> =
                holdings.stored.iter().map(|one| versions::encoding(one).into()).collect();
            let older: Vec<Value> = holdings.older.iter().map(|one| versions::encoding(one).into()).collect();
            let servers =
                holdings.encodings.iter().map(|(server, version)| (server.as_str(), version.as_str().into()));
            json!({
                "resource": resource.to_string(),
                "objects": holdings.objects(),
                "storedVersions": Value::Array(stored),
                "versionsInHistory": Value::Array(older),
                "encodings": Value::Object(servers.collect::<Map>()),
            })
        });
        let history = self.history.iter().map(|one| {
            let (floor, since) = (one.floor.revision.to_string(), time(one.floor.committed_ms));
            json!({
                "resource": one.resource.to_string(), "floor": floor, "since": since, "changes": one.changes,
                "bytes": one.bytes,
            })
        });
        let long = long.iter().map(|one| {
            json!({"resource": one.resource.to_string(), "name": one.name.as_str(), "bytes": one.bytes as u64})
        });
        json!({
            "health": {"status": status, "url": url, "message": message},
            "store": self.store.as_str(),
            "bytes": self.bytes,
            "revision": self.revision.as_str(),
            "objects": self.objects,
            "servers": Value::Array(servers.collect()),
            "watches": self.watches,
            "resources": Value::Array(resources.collect()),
            "history": Value::Array(history.collect()),
            "longObjects": Value::Array(long.collect()),
        })
    }
}

impl RegisteredServer {
    fn text(&self, now: Timestamp) -> String {
        let ago = |time: &Option<Value>| time.as_ref().map(|time| age::since(time, now));
        match (ago(&self.since), ago(&self.heartbeat)) {
            (Some(since), Some(heartbeat)) => {
                format!("{}, since {since} ago, last heartbeat {heartbeat} ago", self.id)
            }
            _ => format!("{}, without a lease", self.id),
        }
    }
}

/// A time in milliseconds since the Unix epoch, in the form of Kubernetes.
fn time(ms: i64) -> String {
    gotext::time(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX))
}

/// The registered servers, and those that only have a lease.
fn servers(inventory: &Inventory, leases: &[Map]) -> Vec<RegisteredServer> {
    let mut servers: Vec<RegisteredServer> = Vec::new();
    for lease in leases {
        let is_servers = fields::text(lease, &["metadata", "labels", IDENTITY_LABEL]) == "kube-apiserver"
            && fields::text(lease, &["metadata", "namespace"]) == "kube-system";
        if is_servers {
            servers.push(RegisteredServer {
                id: fields::text(lease, &["metadata", "name"]).to_owned(),
                since: fields::at(lease, &["metadata", "creationTimestamp"]).cloned(),
                heartbeat: fields::at(lease, &["spec", "renewTime"]).cloned(),
            });
        }
    }
    for id in inventory.servers() {
        if servers.iter().all(|server| server.id != id) {
            servers.push(RegisteredServer { id: id.to_owned(), since: None, heartbeat: None });
        }
    }
    servers
}

/// Whether the server of a kubeconfig is ready, and how many long requests it has.
async fn ask(kubeconfig: &Path) -> (Health, Option<u64>) {
    if !kubeconfig.exists() {
        let why = format!("no server of this data directory runs ({} is not there)", kubeconfig.display());
        return (Health::Unknown(why), None);
    }
    let client = match Client::of_kubeconfig(kubeconfig) {
        Ok(client) => client,
        Err(why) => return (Health::Unknown(why), None),
    };
    let url = client.url().as_str().trim_end_matches('/').to_owned();
    match client.get("/readyz", PATIENCE).await {
        Ok(answer) if answer.status == StatusCode::OK => {}
        Ok(answer) => return (Health::NotReady(url, answer.status.to_string()), None),
        Err(why) => return (Health::NotReady(url, why), None),
    }
    let watches = match client.get("/metrics", PATIENCE).await {
        Ok(answer) if answer.status == StatusCode::OK => {
            Some(sum(&String::from_utf8_lossy(&answer.body), "apiserver_longrunning_requests{"))
        }
        _ => None,
    };
    (Health::Ready(url), watches)
}

/// The sum of a gauge's values over all labels.
fn sum(metrics: &str, start: &str) -> u64 {
    let samples = metrics.lines().filter(|line| line.starts_with(start));
    let values = samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;
    use crate::storage::Moment;

    #[test]
    fn answers_are_in_the_order_of_questions() {
        let time = |text: &str| Some(Value::from(text));
        let overview = Overview {
            health: Health::NotReady("https://h".to_owned(), "no".to_owned()),
            store: "sqlite:s".to_owned(),
            bytes: 2048,
            revision: "7".to_owned(),
            objects: 3,
            resources: 2,
            servers: vec![
                RegisteredServer {
                    id: "a".to_owned(),
                    since: time("2026-01-01T00:00:00Z"),
                    heartbeat: time("2026-01-01T02:59:58.000000Z"),
                },
                RegisteredServer { id: "b".to_owned(), since: None, heartbeat: None },
            ],
            watches: Some(sum("x{a=\"1\"} 1\nx{a=\"2\"} 2\nxy{} 5\n", "x{")),
            history: vec![ResourceHistory {
                resource: GroupResource::new("", "pods"),
                floor: Moment { revision: Revision(4), committed_ms: 1_767_229_200_000 },
                changes: 3,
                bytes: 4096,
            }],
            now: "2026-01-01T03:00:00Z".parse().expect("a time"),
        };
        let expected = "\
health   not ready: https://h: no
store    sqlite:s, 2.0 KiB
objects  3 of 2 resources, at revision 7
server   a, since 3h ago, last heartbeat 2s ago
server   b, without a lease
watches  3 open at this server
history  3 changes, about 4.0 KiB, back to 120m ago; most of pods: 4.0 KiB
";
        assert_eq!(overview.text(Palette::PLAIN), expected);
    }
}
