//! The store: whether it can be read, the clock of its host, and the servers that are registered in it.

use std::path::Path;

use jiff::Timestamp;

use super::Finding;
use crate::cli::keys::KeyArgs;
use crate::cli::output::bytes;
use crate::cli::status::{WaitMigrations, inventory};
use crate::server::datastore::Datastore;
use crate::storage::inventory::Inventory;

/// The difference of two clocks that is told, in microseconds: tokens and certificates of one host are not valid on the other.
const FAR: i64 = 5_000_000;

/// Reads a store beside its servers.
pub async fn look(datastore: &Datastore, keys: &KeyArgs) -> Vec<Finding> {
    if let Datastore::Sqlite(path) = datastore
        && !path.exists()
    {
        let text = format!("{datastore} is not there");
        return vec![Finding::warning(
            "store",
            text,
            "start a server, which makes it, or name it with --datastore",
        )];
    }
    let inventory = match inventory(datastore, WaitMigrations::No, keys).await {
        Ok(inventory) => inventory,
        Err(error) => return vec![Finding::bad("store", error.to_string(), unread(datastore, error.cure()))],
    };
    let objects: u64 = inventory.resources.values().map(|holdings| holdings.objects()).sum();
    let text = format!(
        "{datastore}, {}, {objects} objects at revision {}",
        bytes(inventory.extent.bytes),
        inventory.revision
    );
    let mut findings = vec![Finding::good("store", text)];
    if let Some(clock) = inventory.extent.clock {
        findings.push(clocks("database", clock, Timestamp::now().as_microsecond()));
    }
    findings.extend(replicas(&inventory));
    findings
}

fn unread(datastore: &Datastore, cure: Option<&str>) -> String {
    match (datastore, cure) {
        (_, Some(cure)) => cure.to_owned(),
        (Datastore::Sqlite(path), None) => {
            format!("check the file: sqlite3 {} 'PRAGMA quick_check'; or restore a backup", path.display())
        }
        _ => "correct --datastore".to_owned(),
    }
}

/// Compares another host's clock with this one's.
pub fn clocks(of: &str, there: i64, here: i64) -> Finding {
    let apart = there - here;
    if apart.abs() < FAR {
        return Finding::good("clock", format!("as that of the {of}"));
    }
    let (seconds, way) = (apart.abs() / 1_000_000, if apart > 0 { "ahead" } else { "behind" });
    let text = format!("the clock of the {of} is {seconds} s {way} of this host's");
    Finding::bad("clock", text, "set both clocks: timedatectl set-ntp true")
}

/// The servers, and the resources of which they encode objects differently.
fn replicas(inventory: &Inventory) -> Option<Finding> {
    let servers = inventory.servers();
    let differ = inventory
        .resources
        .iter()
        .filter(|(_, holdings)| holdings.encodings.len() > 1 && holdings.common_encoding().is_none());
    let differ: Vec<String> = differ.map(|(resource, _)| resource.to_string()).collect();
    match (differ.is_empty(), servers.len()) {
        (_, 0) => None,
        (true, 1) => Some(Finding::good("replicas", "one server is registered")),
        (true, several) => {
            Some(Finding::good("replicas", format!("{several} servers are registered, and agree")))
        }
        (false, several) => {
            let text = format!("{several} servers store {} in different versions", differ.join(", "));
            let cure = "run the same release with the same --storage-version on all of them: rowplane status --storage-versions";
            Some(Finding::bad("replicas", text, cure))
        }
    }
}

/// The process that holds the lock of an SQLite database (`/proc/locks`).
pub fn holder(database: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let mut name = std::fs::canonicalize(database).ok()?.into_os_string();
    name.push(".lock");
    let inode = std::fs::metadata(name).ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 4711 fd:00:inode 0 EOF
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "->").collect();
        let of_file = words.get(5)?.rsplit(':').next()? == inode;
        if of_file { words.get(4)?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Verdict;
    use super::*;
    use crate::revision::Revision;
    use crate::schema::names::GroupResource;
    use crate::storage::inventory::{Extent, Holdings};

    #[test]
    fn clocks_that_are_far_apart_are_wrong() {
        assert_eq!(clocks("server", 4_999_999, 0).verdict, Verdict::Good);
        assert_eq!(
            clocks("database", 0, 7_000_000).text,
            "the clock of the database is 7 s behind of this host's"
        );
    }

    #[test]
    fn replicas_that_disagree_are_wrong() {
        let with = |encodings: &[(&str, &str)]| {
            let encodings =
                encodings.iter().map(|(server, version)| ((*server).to_owned(), (*version).to_owned()));
            let holdings = Holdings { encodings: encodings.collect(), ..Holdings::default() };
            let resources = BTreeMap::from([(GroupResource::new("", "pods"), holdings)]);
            replicas(&Inventory {
                revision: Revision(1),
                extent: Extent::default(),
                history: Vec::new(),
                resources,
            })
        };
        assert_eq!(with(&[]), None);
        assert_eq!(
            with(&[("a", "v1"), ("b", "v1")]),
            Some(Finding::good("replicas", "2 servers are registered, and agree"))
        );
        let differ = with(&[("a", "v1"), ("b", "v2")]).expect("a finding");
        assert_eq!(differ.text, "2 servers store pods in different versions");
        assert!(differ.cure.contains("--storage-version"));
    }
}
