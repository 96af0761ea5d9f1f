//! Objects as rowplane stores them, with rows by which Services hold their addresses and node ports.

use std::collections::{BTreeMap, HashSet, VecDeque};

use futures_util::StreamExt as _;

use super::source::read;
use crate::api::services::imported::claims_of;
use crate::cli::error::Error;
use crate::cli::keys::Keys;
use crate::codec::object::Draft;
use crate::random::Random;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::transfer::{Error as TransferError, Export, Record, StoredObject};

/// Claims in one batch.
const CLAIMS: usize = 500;

/// The state of an import between two batches.
struct Completing {
    export: Export,
    keys: Keys,
    random: Random,
    services: GroupResource,
    addresses: GroupResource,
    /// The claims that Services hold, by the revisions of the Services.
    held: BTreeMap<Revision, Vec<StoredObject>>,
    /// The names of the IPAddress objects that the source has, by their revisions.
    own: BTreeMap<Revision, String>,
    /// The claims that have to be made, once all objects have come.
    missing: Option<VecDeque<StoredObject>>,
    /// The revision of the newest row.
    revision: Revision,
}

/// The objects opened and described; behind them the claims that Services hold and that the source keeps in another
/// form. They have revisions of their own, after the source's newest.
pub fn completed(export: Export, keys: Keys) -> Export {
    let (revision, gap, length) = (export.revision, export.gap, export.length);
    let completing = Completing {
        // After the last batch come claims, between which the end is asked for again.
        export: Export { batches: export.batches.fuse().boxed(), ..export },
        keys,
        random: Random::default(),
        services: GroupResource::new("", "services"),
        addresses: GroupResource::new("networking.k8s.io", "ipaddresses"),
        held: BTreeMap::new(),
        own: BTreeMap::new(),
        missing: None,
        revision,
    };
    let batches = futures_util::stream::unfold(Some(completing), |completing| async move {
        let mut completing = completing?;
        match completing.next().await.transpose()? {
            Ok(batch) => Some((Ok(batch), Some(completing))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Export { revision, gap, length, batches: Box::pin(batches) }
}

impl Completing {
    async fn next(&mut self) -> Result<Option<Vec<Record>>, TransferError> {
        let Some(batch) = self.export.batches.next().await else { return Ok(self.next_claims()) };
        let mut records = Vec::new();
        for record in batch? {
            records.push(match record {
                Record::Object(object) => Record::Object(self.complete(object).await?),
                Record::Removed(resource, revision) => {
                    self.held.remove(&revision);
                    self.own.remove(&revision);
                    Record::Removed(resource, revision)
                }
                Record::Reached(revision) => {
                    self.revision = self.revision.max(revision);
                    Record::Reached(revision)
                }
                other @ (Record::Lag(_) | Record::TokenKey(_)) => other,
            });
        }
        Ok(Some(records))
    }

    async fn complete(&mut self, object: StoredObject) -> Result<StoredObject, TransferError> {
        let refused = |error: Error| TransferError::Source(error.to_string());
        let object = read(object, &self.keys).await.map_err(refused)?;
        if object.resource == self.services {
            let draft = Draft::parse(&object.namespace, &object.name, object.value.clone().into());
            let unreadable =
                |error: crate::codec::object::Undecodable| TransferError::Source(error.to_string());
            let service = draft.into_object(object.revision).to_map().map_err(unreadable)?;
            self.held.insert(object.revision, claims_of(&service, &self.random));
        } else if object.resource == self.addresses {
            self.own.insert(object.revision, object.name.clone());
        }
        Ok(object)
    }

    /// The next claims that the source does not have; `None` after the last.
    fn next_claims(&mut self) -> Option<Vec<Record>> {
        let missing = match &mut self.missing {
            Some(missing) => missing,
            None => self.missing.insert(missing(&self.addresses, &mut self.own, &mut self.held)),
        };
        let mut records = Vec::new();
        for mut claim in missing.drain(..missing.len().min(CLAIMS)) {
            self.revision = Revision(self.revision.0 + 1);
            claim.revision = self.revision;
            records.push(Record::Object(claim));
        }
        (!records.is_empty()).then_some(records)
    }
}

/// The claims of Services that the source does not have, each once.
fn missing(
    addresses: &GroupResource,
    own: &mut BTreeMap<Revision, String>,
    held: &mut BTreeMap<Revision, Vec<StoredObject>>,
) -> VecDeque<StoredObject> {
    let own = std::mem::take(own).into_values().map(|name| (addresses.clone(), name));
    let mut claimed: HashSet<(GroupResource, String)> = own.collect();
    let held = std::mem::take(held).into_values().flatten();
    held.filter(|claim| claimed.insert((claim.resource.clone(), claim.name.clone()))).collect()
}
