//! `rowplane status`: the objects in a store, their encodings, and the encodings of the registered servers.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::time::Duration;

use super::error::Error;
use super::keys::{KeyArgs, Keys};
use super::progress::Progress;
use super::table::aligned;
use crate::codec::object::Draft;
use crate::codec::sealed;
use crate::controllers::migration::{self, Account};
use crate::server::datastore::Datastore;
use crate::storage::Format;
use crate::storage::inventory::{Holdings, Inventory, LongObject, Stored};
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;
use crate::storage::transfer::Length;

const HEAD: [&str; 5] = ["RESOURCE", "OBJECTS", "STORED VERSIONS", "COMMON ENCODING VERSION", "SERVERS"];

/// The time between two checks of the migrations; servers report as often.
const LOOKS: Duration = Duration::from_secs(1);

/// Whether to wait for running migrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMigrations {
    Yes,
    No,
}

/// Reads a store while servers may be running on it.
pub async fn inventory(
    datastore: &Datastore,
    wait: WaitMigrations,
    keys: &KeyArgs,
) -> Result<Inventory, Error> {
    if wait == WaitMigrations::Yes {
        wait_for_migrations(datastore, &keys.load().await?).await?;
    }
    Ok(match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => Sqlite::inventory(path).await?,
        Datastore::Postgres(address) => Postgres::inventory(address).await?,
    })
}

/// The objects that are longer than a server accepts now.
pub async fn long_objects(datastore: &Datastore, limit: usize) -> Result<Vec<LongObject>, Error> {
    Ok(match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => Sqlite::long_objects(path, limit).await?,
        Datastore::Postgres(address) => Postgres::long_objects(address, limit).await?,
    })
}

/// Returns once no migration is running or waiting. Shows the progress of those for which it waits.
async fn wait_for_migrations(datastore: &Datastore, keys: &Keys) -> Result<(), Error> {
    let shown = Progress::show("migrations");
    let mut waited_for = BTreeSet::new();
    loop {
        let accounts = migrations(datastore, keys).await?;
        let running = accounts.iter().filter(|account| account.end.is_none());
        let names: BTreeSet<String> = running.map(|account| account.name.clone()).collect();
        if names.is_empty() {
            let failed = accounts.into_iter().find_map(|account| {
                let why = account.end?.err()?;
                Some(Error::Migration { name: account.name, why })
            });
            return failed.map_or(Ok(()), Err);
        }
        waited_for.extend(names);
        let waited = accounts.iter().filter(|account| waited_for.contains(&account.name));
        let (all, left) = waited
            .fold((0, 0), |(all, left), account| (all + account.progress.all, left + account.progress.left));
        shown.meter().expect(Length::Objects(all));
        shown.meter().reach(all.saturating_sub(left));
        tokio::time::sleep(LOOKS).await;
    }
}

async fn migrations(datastore: &Datastore, keys: &Keys) -> Result<Vec<Account>, Error> {
    let resource = migration::migrations();
    let stored = match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => Sqlite::live_objects(path, &resource).await?,
        Datastore::Postgres(address) => Postgres::live_objects(address, &resource).await?,
    };
    let mut accounts = Vec::new();
    for stored in stored {
        let stored = keys.open(stored).await?;
        let object =
            Draft::parse(&stored.namespace, &stored.name, stored.value.into()).into_object(stored.revision);
        accounts.extend(object.to_map().ok().and_then(|object| Account::of(&object)));
    }
    Ok(accounts)
}

/// Prints a store's contents, and which of its objects are longer than the limit.
pub fn print(inventory: &Inventory, long: &[LongObject], limit: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text(inventory).as_bytes())?;
    out.write_all(text_of_long(long, limit).as_bytes())?;
    out.flush()
}

/// A row for each resource that has objects, or that servers encode.
fn text(inventory: &Inventory) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(inventory.resources.iter().map(|(resource, holdings)| row(&resource.to_string(), holdings)));
    let mut text = format!("revision {}\n", inventory.revision);
    for server in inventory.servers() {
        text.push_str(&format!("server   {server}\n"));
    }
    text + "\n" + &aligned(&rows)
}

/// A line for each object; nothing if there is none.
fn text_of_long(long: &[LongObject], limit: usize) -> String {
    if long.is_empty() {
        return String::new();
    }
    let mut text =
        format!("\nlonger than --max-object-bytes {limit}: these can be read, deleted and made smaller\n");
    for LongObject { resource, name, bytes } in long {
        text.push_str(&format!("{resource} {name}: {bytes} bytes\n"));
    }
    text
}

fn row(resource: &str, holdings: &Holdings) -> [String; 5] {
    let stored: Vec<String> = holdings.stored.iter().map(encoding).collect();
    let common = match (holdings.common_encoding(), holdings.encodings.len()) {
        (Some(common), _) => common,
        (None, 0) => "<none>",
        (None, _) => "<unset>",
    };
    let stored = if stored.is_empty() { "<none>".to_owned() } else { stored.join(", ") };
    let (objects, servers) = (holdings.objects().to_string(), holdings.encodings.len().to_string());
    [resource.to_owned(), objects, stored, common.to_owned(), servers]
}

fn encoding(stored: &Stored) -> String {
    let format = match &stored.format {
        Format::Json => "json".to_owned(),
        Format::Protobuf => "protobuf".to_owned(),
        Format::Sealed(prefix) => sealed::key_name(prefix),
    };
    format!("{} {format} ({})", stored.api_version, stored.objects)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::revision::Revision;
    use crate::schema::names::GroupResource;

    #[test]
    fn the_table() {
        let stored = |api_version: &str, format, objects| Stored {
            api_version: api_version.to_owned(),
            format,
            objects,
        };
        let encodings = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(server, version)| ((*server).to_owned(), (*version).to_owned())).collect()
        };
        let inventory = Inventory {
            revision: Revision(7),
            resources: BTreeMap::from([
                (
                    GroupResource::new("", "pods"),
                    Holdings {
                        stored: vec![stored("v1", Format::Json, 2), stored("v1", Format::Protobuf, 1)],
                        encodings: encodings(&[("b", "v1"), ("a", "v1")]),
                    },
                ),
                (
                    GroupResource::new("apps", "deployments"),
                    Holdings {
                        stored: Vec::new(),
                        encodings: encodings(&[("a", "apps/v1"), ("b", "apps/v2")]),
                    },
                ),
            ]),
        };
        let expected = "\
revision 7
server   a
server   b

RESOURCE          OBJECTS  STORED VERSIONS               COMMON ENCODING VERSION  SERVERS
pods              3        v1 json (2), v1 protobuf (1)  v1                       2
deployments.apps  0        <none>                        <unset>                  2
";
        assert_eq!(text(&inventory), expected);
        let long = LongObject { resource: GroupResource::new("", "pods"), name: "t/p".to_owned(), bytes: 9 };
        let told = "\nlonger than --max-object-bytes 8: these can be read, deleted and made smaller\npods t/p: 9 bytes\n";
        assert_eq!((text_of_long(&[long], 8), text_of_long(&[], 8)), (told.to_owned(), String::new()));
    }
}
