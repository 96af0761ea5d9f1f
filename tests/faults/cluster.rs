//! The record of a run that a trigger in a PostgreSQL cluster keeps.

use super::log::Row;
pub use crate::support::cluster::Cluster;

impl Cluster {
    /// From now on every change is recorded in the transaction that makes it. Returns the clock before that.
    pub async fn install_witness(&self) -> u64 {
        let statement = "BEGIN; SELECT revision FROM clock FOR UPDATE; \
             CREATE TABLE witness (revision bigint, resource integer, namespace text, name text, deleted boolean, uid text, value bytea); \
             CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               INSERT INTO witness VALUES (NEW.resource_version, NEW.resource, NEW.namespace, NEW.name, NEW.deleted, NEW.uid, NEW.value); \
               RETURN NULL; END $$; \
             CREATE TRIGGER witness AFTER INSERT ON objects FOR EACH ROW EXECUTE FUNCTION witness(); \
             CREATE TABLE witness_start AS SELECT revision FROM clock; COMMIT";
        self.execute(statement).await;
        self.number("SELECT revision FROM witness_start").await as u64
    }

    pub async fn witnessed(&self) -> Vec<Row> {
        let mut connection = self.try_connect().await.expect("connect");
        let rows: Vec<Witnessed> =
            sqlx::query_as(WITNESSED).fetch_all(&mut connection).await.expect("what was witnessed");
        rows.into_iter().map(row).collect()
    }
}

/// Selects the records. Takes no parameters; the same on both databases.
pub const WITNESSED: &str = "SELECT w.revision, (r.api_group = '' AND r.plural IN ('configmaps', 'pods')) OR (r.api_group = 'apps' AND r.plural = 'deployments') OR (r.api_group = 'faults.example.com' AND r.plural = 'widgets'), w.namespace, w.name, w.deleted, w.uid, w.value \
     FROM witness w JOIN resources r ON r.id = w.resource ORDER BY w.revision";

type Witnessed = (i64, bool, String, String, bool, String, Vec<u8>);

/// A row of [`WITNESSED`].
pub fn row((revision, ours, namespace, name, deleted, uid, value): Witnessed) -> Row {
    let ours = ours && super::load::NAMESPACES.contains(&&*namespace);
    Row { revision: revision as u64, key: ours.then_some((namespace, name)), deleted, uid, value }
}
