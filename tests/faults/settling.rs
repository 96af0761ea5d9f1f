//! A batch that is not answered because the database crashed.

use std::sync::Arc;

use rowplane::revision::Revision;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::{Backend, Key, Scan};
use sqlx::Connection;

use super::cluster::Cluster;
use super::process::pause;
use super::proxy::{Proxy, Target};
use crate::support::object::{create, names, pass, resource};

const TRIES: usize = 10;

/// After a crash, PostgreSQL reuses the ids of transactions that left no trace in its log, and reports such an id as
/// committed once another transaction with it has been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_lost_in_a_crash_is_not_taken_for_somebody_elses() {
    let cluster = Cluster::create().await;
    // Nothing is written to the log before it must be.
    cluster.execute("ALTER SYSTEM SET wal_writer_delay = '10s'").await;
    cluster.execute("SELECT pg_reload_conf()").await;
    let link = Proxy::start(cluster.target()).await;
    let address = Cluster::url_through(link.address().port());
    let backend: Arc<dyn Backend> = Arc::new(Postgres::open(&address).await.expect("open the store"));
    let resource = resource(&*backend, "things").await;
    cluster
        .execute(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS \
               $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON objects DEFERRABLE INITIALLY DEFERRED \
               FOR EACH ROW EXECUTE FUNCTION hold()",
        )
        .await;
    for n in 0..TRIES {
        let mut holder = cluster.try_connect().await.expect("connect");
        sqlx::query("SELECT pg_advisory_lock(1)").execute(&mut holder).await.expect("a lock");
        let key = Key::new(resource, "ns", &format!("lost-{n}"));
        let write = [create(&key, 1)];
        let commit = tokio::spawn({
            let backend = backend.clone();
            async move { backend.commit(&write, Revision(0)).await }
        });
        const WAITING: &str =
            "FROM pg_stat_activity WHERE query LIKE '%CALL commit_batch_3%' AND wait_event = 'advisory'";
        while cluster.number(&format!("SELECT COUNT(*) {WAITING}")).await == 0 {
            pause().await;
        }
        let lost = cluster.number(&format!("SELECT backend_xid::text::bigint {WAITING}")).await;
        // What the store asks itself would take the id.
        link.retarget(Target::Unix("nowhere".into()));
        cluster.kill().await;
        let _ = holder.close_hard().await;
        cluster.start().await;
        let reused = cluster.number("SELECT pg_current_xact_id()::text::bigint").await <= lost;
        while cluster.number("SELECT pg_current_xact_id()::text::bigint").await < lost {}
        link.retarget(cluster.target());

        let outcome = commit.await.expect("the commit");
        assert!(outcome.is_err(), "{outcome:?} of a transaction that is gone");
        let at = backend.clock().await.expect("a clock").revision;
        assert_eq!(names(&*backend, &Scan::all(resource), at).await, [""; 0]);
        if reused {
            let key = Key::new(resource, "ns", "next");
            assert_eq!(pass(&*backend, create(&key, 1)).await.0, at.0 + 1);
            return;
        }
    }
    panic!("no id was used twice in {TRIES} crashes");
}
