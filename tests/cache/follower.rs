//! Indexes that follow the cache.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use rowplane::cache::follower::{Content, Follower};
use rowplane::codec::object::Object;
use rowplane::revision::Revision;

use crate::Server;
use crate::support::database::Database;
use crate::support::object::{create, delete, update};

/// The revisions of the objects, by key.
#[derive(Default)]
struct Revisions(BTreeMap<Box<str>, Revision>);

/// The number of times that an index was built anew, and of objects that it has taken in.
#[derive(Default)]
struct Counts {
    clears: AtomicUsize,
    objects: AtomicUsize,
}

impl Counts {
    fn take(&self) -> (usize, usize) {
        (self.clears.swap(0, SeqCst), self.objects.swap(0, SeqCst))
    }
}

impl Content for Revisions {
    type Context = Counts;

    fn clear(&mut self, counts: &Counts) {
        counts.clears.fetch_add(1, SeqCst);
        self.0.clear();
    }

    fn take_in(&mut self, counts: &Counts, place: usize, key: &str, object: Option<&Arc<Object>>) {
        assert_eq!(place, 0);
        counts.objects.fetch_add(1, SeqCst);
        match object {
            Some(object) => drop(self.0.insert(key.into(), object.revision())),
            None => drop(self.0.remove(key)),
        }
    }
}

on_every_backend! {
    an_index_takes_in_changes_once,
    an_index_is_built_anew_by_a_reread,
}

async fn an_index_takes_in_changes_once(database: Database) {
    let server = Server::start(&database).await;
    let (a, b) = (server.key("a"), server.key("b"));
    let first = server.write(create(&a, 1)).await;
    let (index, counts) = (Follower::new([server.pods], Revisions::default()), Counts::default());
    let known = || index.newest(&server.cache, &counts).0.clone();
    assert!(index.is_unread());
    assert_eq!(known(), BTreeMap::from([("ns\0a".into(), first)]));
    assert_eq!(counts.take(), (1, 1));

    let second = server.rewrite(&a, first, 3).await;
    let third = server.write(create(&b, 1)).await;
    assert_eq!(known(), BTreeMap::from([("ns\0a".into(), second), ("ns\0b".into(), third)]));
    assert_eq!((known().len(), counts.take()), (2, (0, 2)), "an object each, and nothing by the second look");

    server.write(delete(&a, second)).await;
    assert_eq!(known(), BTreeMap::from([("ns\0b".into(), third)]));
    assert_eq!(counts.take(), (0, 1));
}

async fn an_index_is_built_anew_by_a_reread(database: Database) {
    let server = Server::start(&database).await;
    let key = server.key("a");
    let at = server.write(create(&key, 1)).await;
    let (index, counts) = (Follower::new([server.pods], Revisions::default()), Counts::default());
    let known = || index.newest(&server.cache, &counts).0.clone();
    known();
    counts.take();

    // As when a key service is back: rows may be readable that were not, and no revision tells.
    server.cache.reread(&[server.pods]).await.expect("a reread");
    assert_eq!(known(), BTreeMap::from([("ns\0a".into(), at)]));
    assert_eq!((known().len(), counts.take()), (1, (1, 1)));

    let at = server.write(update(&key, at, 1)).await;
    assert_eq!(known(), BTreeMap::from([("ns\0a".into(), at)]));
    assert_eq!(counts.take(), (0, 1), "changes are enough again");
}
