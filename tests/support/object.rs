//! Small objects, writes of them, and results of reads as plain data.

use bytes::Bytes;
use futures_util::TryStreamExt;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{
    Backend, Change, ChangeRow, Clock, Error, Expect, Key, Mutation, Outcome, ResourceId, RowStream, Scan,
};

/// The stored value of version `n` of an object.
pub fn value(n: u64) -> Bytes {
    format!(r#"{{"kind":"K","apiVersion":"v1","metadata":{{"uid":"u"}},"n":{n}}}"#).into()
}

/// A write of [`value`]`(n)`.
pub fn put(key: &Key, expect: Expect, n: u64) -> Mutation {
    let draft = Draft::of_json(&key.namespace, &key.name, value(n));
    let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
    Mutation::new(key.clone(), expect, change)
}

pub fn create(key: &Key, n: u64) -> Mutation {
    put(key, Expect::Absent, n)
}

pub fn update(key: &Key, at: Revision, n: u64) -> Mutation {
    put(key, Expect::At(at), n)
}

pub fn delete(key: &Key, at: Revision) -> Mutation {
    Mutation::new(key.clone(), Expect::At(at), Change::Delete)
}

/// The id of the resource with this plural.
pub async fn resource(backend: &dyn Backend, plural: &str) -> ResourceId {
    let ids = backend.resource_ids(&[GroupResource::new("example.com", plural)]).await;
    ids.expect("an id")[0]
}

/// Commits a mutation, which must pass.
pub async fn pass(backend: &dyn Backend, mutation: Mutation) -> Revision {
    let commit = backend.commit(&[mutation], Revision(0)).await.expect("commit");
    committed(commit.outcomes[0])
}

/// Gives up history before a revision: neither watches nor reads of the past find it any more.
pub async fn give_up(backend: &dyn Backend, to: Revision) -> Clock {
    let clock = backend.compact(to).await.expect("compact");
    backend.raise_floors(to, &[]).await.expect("raised floors");
    clock
}

/// The revision of an outcome, which must be a success.
pub fn committed(outcome: Outcome) -> Revision {
    match outcome {
        Outcome::Committed(revision) => revision,
        _ => panic!("refused: {outcome:?}"),
    }
}

/// A row of a list: namespace, name, version, value.
pub type Item = (String, String, u64, Bytes);

pub async fn list(backend: &dyn Backend, scan: &Scan, at: Revision) -> Result<Vec<Item>, Error> {
    items(backend.scan(scan.clone(), at).await?).await
}

/// The rows of a scan as plain data.
pub async fn items(rows: RowStream) -> Result<Vec<Item>, Error> {
    rows.map_ok(|row| (row.namespace.into(), row.name.into(), row.revision.0, row.value)).try_collect().await
}

/// The objects of a list as `namespace/name`.
pub async fn names(backend: &dyn Backend, scan: &Scan, at: Revision) -> Vec<String> {
    let items = list(backend, scan, at).await.expect("list");
    items.into_iter().map(|(namespace, name, ..)| format!("{namespace}/{name}")).collect()
}

/// The feed from `after` to its end, read in pieces of `limit`.
pub async fn feed(
    backend: &dyn Backend,
    after: Revision,
    resource: Option<ResourceId>,
    limit: u32,
) -> Vec<ChangeRow> {
    let end = backend.clock().await.expect("clock").revision;
    let mut at = after;
    let mut rows = Vec::new();
    while at < end {
        let piece = backend.changes(at, resource, limit).await.expect("changes");
        assert!(piece.through > at, "a feed that is not at its end moves on");
        at = piece.through;
        rows.extend(piece.rows);
    }
    rows
}
