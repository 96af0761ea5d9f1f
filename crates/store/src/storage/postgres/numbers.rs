//! The numbers of resources that this server has been told. It goes on writing rows under them, so they must outlive a promotion
//! that has lost them: a standby may have received a definition and not the number that was given to its resource afterwards.
//! Otherwise another server would give the resource another number, and neither would see what the other has written.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::postgres::PgConnection;

use super::lineage::{Error, Refusal};
use super::whole;
use crate::schema::names::GroupResource;
use crate::storage::ResourceId;

#[derive(Default)]
pub struct Numbers {
    told: Mutex<BTreeMap<i32, GroupResource>>,
    /// The newest timeline that has all of them.
    timeline: AtomicU32,
}

impl Numbers {
    /// Notes numbers that the database has told.
    pub fn note(&self, resources: &[GroupResource], numbers: &[ResourceId]) {
        self.told().extend(numbers.iter().map(|number| number.0).zip(resources.iter().cloned()));
    }

    /// Sees to it that a new session's database has them. Asks nothing unless somebody has been promoted since.
    pub async fn keep(&self, connection: &mut PgConnection, timeline: u32) -> Result<(), Error> {
        if timeline > self.timeline.load(Ordering::Acquire) {
            let told = self.told().clone();
            let lost = missing(connection, &told).await?;
            if !lost.is_empty() {
                put_back(connection, &lost).await?;
                if let Some((_, name)) = missing(connection, &told).await?.first() {
                    return Err(Refusal::Renumbered(name.to_string()).into());
                }
            }
            self.timeline.fetch_max(timeline, Ordering::AcqRel);
        }
        Ok(())
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<i32, GroupResource>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn put_back(connection: &mut PgConnection, lost: &[(i32, GroupResource)]) -> Result<(), sqlx::Error> {
    tracing::error!(resources = lost.len(), "the database has lost numbers of resources; they are put back");
    let row = |(number, name): &(i32, GroupResource)| {
        format!("({number}, {}, {})", whole::text(&name.group), whole::text(&name.plural))
    };
    let rows: Vec<String> = lost.iter().map(row).collect();
    let statement = format!(
        "INSERT INTO resources (id, api_group, plural) OVERRIDING SYSTEM VALUE VALUES {} ON CONFLICT DO NOTHING; \
         SELECT setval(number, GREATEST((SELECT MAX(id) FROM resources), pg_sequence_last_value(number))) \
         FROM (SELECT pg_get_serial_sequence('resources', 'id')::regclass AS number) AS sequence",
        rows.join(", ")
    );
    whole::run(connection, statement).await.map(drop)
}

/// Numbers of resources that the database lacks, or has for other resources.
async fn missing(
    connection: &mut PgConnection,
    told: &BTreeMap<i32, GroupResource>,
) -> Result<Vec<(i32, GroupResource)>, sqlx::Error> {
    let numbers: Vec<i32> = told.keys().copied().collect();
    let found: Vec<(i32, String, String)> =
        sqlx::query_as("SELECT id, api_group, plural FROM resources WHERE id = ANY($1)")
            .bind(&numbers)
            .fetch_all(connection)
            .await?;
    let found: BTreeMap<i32, GroupResource> =
        found.into_iter().map(|(id, group, plural)| (id, GroupResource::new(&group, &plural))).collect();
    let lost = told.iter().filter(|(number, name)| found.get(number) != Some(name));
    Ok(lost.map(|(number, name)| (*number, name.clone())).collect())
}
