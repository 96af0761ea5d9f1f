//! Reads from a snapshot of the tables.

use futures_util::stream::{self, StreamExt as _};

use super::base::row_of;
use super::tables::{Live, Tables, Version};
use crate::revision::Revision;
use crate::storage::{
    BlockStream, ChangeRow, Changes, Key, ResourceId, Row, RowStream, Scan, Stale, StaleRow,
};

/// How many rows are made at a time; no more are held ahead of the reader.
const BLOCK: usize = 256;

/// The live rows of `scan` as of `at`.
pub fn scan(tables: Tables, scan: Scan, at: Revision) -> RowStream {
    let blocks = stream::unfold(scan, move |mut scan| {
        let most = scan.limit.map_or(BLOCK, |limit| BLOCK.min(limit as usize));
        let rows: Vec<Row> =
            tables.live_at(&scan, at).take(most).map(|live| live.row(scan.resource)).collect();
        let rest = rows.last().map(|last| {
            scan.after = Some((last.namespace.clone(), last.name.clone()));
            scan.limit = scan.limit.map(|limit| limit - rows.len() as u32);
            scan
        });
        std::future::ready(rest.map(|rest| (rows, rest)))
    });
    Box::pin(blocks.flat_map(|rows| stream::iter(rows.into_iter().map(Ok))))
}

/// The rows with these revisions, without those that have been swept.
pub fn rows_of(tables: Tables, revisions: Vec<Revision>) -> BlockStream {
    let blocks = revisions.len().div_ceil(BLOCK);
    let block = move |index: usize| {
        let revisions = &revisions[index * BLOCK..revisions.len().min((index + 1) * BLOCK)];
        let own = revisions.iter().filter_map(|revision| tables.version(*revision));
        let mut rows: Vec<Row> = own.map(|version| version.row()).collect();
        if let Some(base) = tables.base().filter(|_| rows.len() < revisions.len()) {
            let missing: Vec<Revision> =
                revisions.iter().copied().filter(|revision| tables.version(*revision).is_none()).collect();
            rows.extend(
                base.objects_of(&missing).iter().map(|(resource, object)| row_of(*resource, &**object)),
            );
        }
        Ok(rows)
    };
    Box::pin(stream::iter((0..blocks).map(block)))
}

pub fn changes(tables: &Tables, after: Revision, resource: Option<ResourceId>, mut limit: u32) -> Changes {
    loop {
        let most = limit as usize;
        let rows = match resource {
            None => tables.changes_after(after).take(most).map(|change| change_row(change, None)).collect(),
            Some(resource) => {
                let changes = tables.changes_of(resource, after).take(most);
                changes.map(|change| change_row(change, Some(tables))).collect()
            }
        };
        match Changes::new(rows, limit, after, tables.clock.revision) {
            Some(changes) => return changes,
            None => limit = limit.saturating_mul(2),
        }
    }
}

/// The live rows of `scan` that are stored in another encoding.
pub fn stale<'a>(
    tables: &'a Tables,
    stale: &'a Stale,
    scan: &Scan,
) -> impl Iterator<Item = StaleRow> + use<'a> {
    let live = tables.live_at(scan, tables.clock.revision);
    let found = live.filter(|live| {
        live.revision() <= stale.through
            && match live {
                Live::Own(version) => stale.is_in_another(&version.stored_version, &version.value),
                // Its bytes are made when they are asked for, in whatever format.
                Live::Base(object) => object.api_version() != Some(&stale.api_version),
            }
    });
    found.map(|live| {
        let (namespace, name) = live.namespace_and_name();
        StaleRow { key: Key::new(stale.resource, namespace, name), revision: live.revision() }
    })
}

/// A row of the changefeed. If `replaced` is given, the version that the change replaced is looked up in it.
fn change_row(change: &Version, replaced: Option<&Tables>) -> ChangeRow {
    let previous = replaced.zip(change.previous).and_then(|(tables, previous)| tables.version(previous));
    ChangeRow {
        revision: change.revision,
        key: change.key.clone(),
        kind: change.kind,
        value: change.is_live().then(|| change.value.clone()),
        previous: previous.map(|version| (version.revision, version.value.clone())),
        counting: change.counting,
    }
}
