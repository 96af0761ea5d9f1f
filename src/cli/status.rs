//! `rowplane status`: whether servers are well, what a store holds, in which versions, and who writes it.

mod overview;
mod versions;

use std::collections::BTreeSet;
use std::time::Duration;

use self::overview::Overview;
use super::args::StatusConfig;
use super::error::Error;
use super::keys::{KeyArgs, Keys};
use super::output::OutputArgs;
use super::progress::Progress;
use crate::codec::object::Draft;
use crate::controllers::migration::{self, Account};
use crate::schema::names::GroupResource;
use crate::server::datastore::Datastore;
use crate::storage::inventory::{Inventory, LongObject};
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;
use crate::storage::transfer::Length;
use crate::tree::Map;

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
    let objects = live_objects(datastore, &migration::migrations(), keys).await?;
    Ok(objects.iter().filter_map(Account::of).collect())
}

/// The objects of a resource, read beside running servers.
pub(super) async fn live_objects(
    datastore: &Datastore,
    resource: &GroupResource,
    keys: &Keys,
) -> Result<Vec<Map>, Error> {
    let stored = match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => Sqlite::live_objects(path, resource).await?,
        Datastore::Postgres(address) => Postgres::live_objects(address, resource).await?,
    };
    let mut objects = Vec::new();
    for stored in stored {
        let stored = keys.open(stored).await?;
        let draft = Draft::parse(&stored.namespace, &stored.name, stored.value.into());
        objects.extend(draft.into_object(stored.revision).to_map().ok());
    }
    Ok(objects)
}

/// Reads the store, asks the server of the data directory, and prints what was found.
pub async fn show(config: StatusConfig, output: OutputArgs) -> Result<(), Error> {
    let StatusConfig { datastore, data_dir, wait, keys, max_object_bytes, with_versions } = config;
    let inventory = inventory(&datastore, wait, &keys).await?;
    let long = long_objects(&datastore, max_object_bytes).await?;
    let overview = Overview::collect(&datastore, &data_dir, &inventory, &keys).await?;
    let value = overview.document(&inventory, &long);
    output.print(&value, |palette| {
        let mut text = overview.text(palette);
        if with_versions {
            text.push_str(&format!("\n{}", versions::text(&inventory)));
        }
        text + &versions::text_of_long(&long, max_object_bytes)
    })
}
