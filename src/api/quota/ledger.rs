//! ResourceQuotas as rows that count: charges add to `status.used`, up to `status.hard`.

use bytes::Bytes;

use super::amounts::{added, exceeds};
use crate::api::{ObjectMap, fields, meta, metadata};
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Draft;
use crate::revision::Revision;
use crate::storage::counting::{Account, Charge, Ledger};
use crate::storage::{Change, Key};
use crate::tree::Value;

/// The version in which quotas are stored.
const VERSION: &str = "v1";

#[derive(Debug)]
pub struct Quotas;

impl Ledger for Quotas {
    fn open(&self, key: &Key, value: Bytes) -> Option<Box<dyn Account>> {
        let media = StorageMediaType::of(&value);
        let stored = Draft::parse(&key.namespace, &key.name, value).into_object(Revision(0));
        let object = stored.to_closed_map().ok()?;
        Some(Box::new(Quota { key: key.clone(), object, media }))
    }
}

/// A quota while a batch is judged.
#[derive(Clone)]
struct Quota {
    key: Key,
    object: ObjectMap,
    media: StorageMediaType,
}

impl Quota {
    /// The counter of a resource after a charge; `None` if the quota does not count the resource.
    fn next(&self, name: &str, amount: &str) -> Option<String> {
        let used = fields::at(&self.object, &["status", "used", name])?.as_str()?;
        // While a quota is new, less than nothing may be left until what it lacks has been added.
        Some(added(used, amount))
    }

    fn allows(&self, name: &str, amount: &str, next: &str) -> bool {
        let hard = fields::at(&self.object, &["status", "hard", name]).and_then(Value::as_str);
        !exceeds(amount, "0") || hard.is_none_or(|hard| !exceeds(next, hard))
    }
}

impl Account for Quota {
    fn add(&mut self, charge: &Charge) -> bool {
        let next: Vec<(&str, String)> = charge
            .amounts
            .iter()
            .filter_map(|(name, amount)| Some((&**name, self.next(name, amount)?)))
            .collect();
        let amount = |name: &str| {
            charge.amounts.iter().find(|(own, _)| **own == *name).map_or("0", |(_, amount)| &**amount)
        };
        if charge.limited && !next.iter().all(|(name, next)| self.allows(name, amount(name), next)) {
            return false;
        }
        let used = fields::object_mut(fields::object_mut(&mut self.object, "status"), "used");
        for (name, next) in next {
            used.insert(name, next.into());
        }
        true
    }

    fn duplicate(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn change(&self) -> Change {
        let uid = metadata(&self.object).map_or("", |metadata| meta::text(metadata, "uid")).into();
        let draft = Draft::encode(&self.key.namespace, &self.key.name, self.object.clone(), self.media);
        Change::Put { uid, stored_version: VERSION.into(), value: draft.without_message().into() }
    }
}
