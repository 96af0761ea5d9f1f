//! What a write does to the sets of all managers.

use super::compare::{Comparison, compare};
use super::conflict::Conflict;
use super::fields::FieldSet;
use super::filter::Filter;
use super::first::{self, Unusual};
use super::managers::{self, Identity, Manager, Managers, NEVER_OWNED};
use super::merge::merge;
use super::owned::owned;
use super::path;
use super::reclaimed::reclaimed;
use super::remove::remove;
use super::schema::Schema;
use super::validate::validate;
use crate::tree::{Map, Value};

type Object = Map;

/// The versions of a kind. Managers keep their sets in the version they wrote in.
pub trait Versions {
    /// `None` for a version that is not served.
    fn schema(&self, api_version: &str) -> Option<&Schema>;
    /// The object in a served version.
    fn convert(&self, object: &Object, api_version: &str) -> Object;
    /// What writes through the part of the resource at hand can come to own.
    fn filter(&self) -> &Filter;
}

/// Who writes.
#[derive(Clone, Debug)]
pub struct Acting {
    pub identity: Identity,
    /// RFC 3339, UTC, whole seconds.
    pub now: String,
}

/// What an apply came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    pub object: Object,
    pub managers: Managers,
}

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration does not fit the schema.
    Unfit(String),
    Conflicts(Vec<Conflict>),
}

/// What apply does about the fields of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflicts {
    #[default]
    Refuse,
    Force,
}

/// Comparisons of the same two objects in every version that a manager has.
struct Comparisons<'a, V> {
    versions: &'a V,
    old: &'a Object,
    new: &'a Object,
    /// Hardly ever more than one.
    known: Vec<(String, Option<Comparison>)>,
}

impl<'a, V: Versions> Comparisons<'a, V> {
    /// `None` if the version is not served.
    fn of(&mut self, api_version: &str) -> Option<&Comparison> {
        let Self { versions, old, new, known } = self;
        // Only those that are served are kept: managers may name any number of others.
        versions.schema(api_version)?;
        let at = known.iter().position(|(version, _)| version == api_version).unwrap_or_else(|| {
            let comparison = versions.schema(api_version).map(|schema| {
                let found = match of_version(old, api_version) && of_version(new, api_version) {
                    true => compare(schema, old, new),
                    false => {
                        let (old, new) =
                            (versions.convert(old, api_version), versions.convert(new, api_version));
                        compare(schema, &old, &new)
                    }
                };
                found.mapped(|set| versions.filter().pass(set))
            });
            known.push((api_version.to_owned(), comparison));
            known.len() - 1
        });
        known[at].1.as_ref()
    }

    fn into_one(mut self, api_version: &str) -> Option<Comparison> {
        self.of(api_version)?;
        self.known.into_iter().find(|(version, _)| version == api_version)?.1
    }
}

fn of_version(object: &Object, api_version: &str) -> bool {
    object.get("apiVersion").is_some_and(|version| version == api_version)
}

/// The managers after a write that is no apply; `None` if nothing of ownership changes.
pub fn update(
    versions: &impl Versions,
    old: &Object,
    new: &Object,
    managers: &Managers,
    acting: &Acting,
) -> Option<Managers> {
    if managers.0.is_empty() {
        return first(versions, old, new, acting);
    }
    Update::new(versions, old, new, acting)?.managers(managers)
}

/// The encoded managers, closed, of a new object that brings none along; `zero` is the zero value of its kind.
pub fn encoded_first(
    versions: &impl Versions,
    zero: &Object,
    new: &Object,
    acting: &Acting,
) -> Option<Value> {
    let Identity { api_version, .. } = &acting.identity;
    let schema = versions.schema(api_version)?;
    match first::first(schema, zero, new, versions.filter()) {
        Ok(fields) => {
            let entry = managers::encode_entry(&acting.identity, Some(&acting.now), fields?);
            Some(Value::Array(vec![entry]))
        }
        Err(Unusual) => first(versions, zero, new, acting)?.encode(),
    }
}

/// The only manager of an object that had none.
fn first(versions: &impl Versions, old: &Object, new: &Object, acting: &Acting) -> Option<Managers> {
    let comparisons = Comparisons { versions, old, new, known: Vec::new() };
    let all = comparisons.into_one(&acting.identity.api_version).filter(|all| !all.keyless)?;
    let fields = all.into_written().difference(&NEVER_OWNED);
    let manager = Manager { identity: acting.identity.clone(), time: Some(acting.now.clone()), fields };
    (!manager.fields.is_empty()).then(|| Managers(vec![manager]))
}

/// A write that is no apply: what it wrote leaves all others, what it removed leaves everybody.
pub struct Update<'a, V> {
    comparisons: Comparisons<'a, V>,
    acting: &'a Acting,
    /// In the version that is written, of what can be owned.
    own: Comparison,
}

impl<'a, V: Versions> Update<'a, V> {
    /// `None` if the version that is written is not served.
    pub fn new(versions: &'a V, old: &'a Object, new: &'a Object, acting: &'a Acting) -> Option<Self> {
        let mut comparisons = Comparisons { versions, old, new, known: Vec::new() };
        let own = comparisons.of(&acting.identity.api_version)?.clone();
        let own = own.mapped(|set| set.difference(&NEVER_OWNED));
        Some(Self { comparisons, acting, own })
    }

    /// Whether nobody's fields can be tracked any more.
    pub fn ends_tracking(&self) -> bool {
        self.own.keyless
    }

    /// The encoded managers, closed, without decoding them, where the write changes no set: it wrote only what its manager
    /// owns, alone, and removed nothing that anybody owns. `None` if that is not so, or not easily seen.
    pub fn retouched(&mut self, entries: &[Value]) -> Option<Vec<Value>> {
        let version = &self.acting.identity.api_version;
        let all = self.comparisons.of(version)?;
        let one_version = entries.iter().all(|entry| entry.get("apiVersion").is_some_and(|v| v == version));
        if !one_version {
            return None;
        }
        if self.own.is_empty() {
            return Some(entries.to_vec());
        }
        managers::retouched(entries, self.acting, &self.own, &all.written())
    }

    /// The managers afterwards; `None` if nothing of ownership changes.
    pub fn managers(mut self, managers: &Managers) -> Option<Managers> {
        let Self { comparisons, acting, own } = &mut self;
        let served = |manager: &Manager| comparisons.versions.schema(&manager.identity.api_version).is_some();
        if own.is_empty() && managers.0.iter().all(served) {
            return None;
        }
        let mut left = without_changes(managers.clone(), comparisons, |_| true);
        let written = std::mem::take(own).into_written();
        if !written.is_empty() {
            let before = left.find_mut(&acting.identity).map(|manager| std::mem::take(&mut manager.fields));
            left.put(Manager {
                identity: acting.identity.clone(),
                time: Some(acting.now.clone()),
                fields: match before {
                    Some(before) => before.union(&written),
                    None => written,
                },
            });
        }
        left.drop_empty();
        left.cap();
        Some(left)
    }
}

/// Managers without what changed; those of versions that are not served go.
fn without_changes<V: Versions>(
    managers: Managers,
    comparisons: &mut Comparisons<'_, V>,
    touched: impl Fn(&Identity) -> bool,
) -> Managers {
    let change = |mut manager: Manager| {
        let comparison = comparisons.of(&manager.identity.api_version)?;
        if touched(&manager.identity) {
            let changed = [&comparison.modified, &comparison.added, &comparison.removed];
            manager.fields = changed.into_iter().fold(manager.fields, FieldSet::difference);
        }
        Some(manager)
    };
    Managers(managers.0.into_iter().filter_map(change).collect())
}

/// Lays `config` over `live`, takes out what the applier no longer says and nobody else owns, and settles ownership.
/// Neither object has managedFields.
pub fn apply(
    versions: &impl Versions,
    live: &Object,
    config: &Object,
    managers: &Managers,
    acting: &Acting,
    conflicts: Conflicts,
) -> Result<Applied, Refusal> {
    let version = &acting.identity.api_version;
    let Some(schema) = versions.schema(version) else {
        return Err(Refusal::Unfit(format!("no corresponding type for {version}")));
    };
    validate(schema, config).map_err(Refusal::Unfit)?;
    let merged = merge(schema, live, config);
    let fields = versions.filter().pass(owned(schema, config));
    let last = managers.find(&acting.identity);
    let time = last.and_then(|last| last.time.clone());
    let others = managers.0.iter().filter(|manager| !manager.identity.same(&acting.identity)).cloned();
    let mut managers = Managers(others.collect());
    managers.put(Manager { identity: acting.identity.clone(), time, fields });
    let object = match last {
        Some(last) => prune(versions, merged, &managers, last, acting),
        None => merged,
    };
    let mut comparisons = Comparisons { versions, old: live, new: &object, known: Vec::new() };
    let found = conflicts_with_others(&managers, &mut comparisons, &acting.identity);
    if conflicts == Conflicts::Refuse && !found.is_empty() {
        return Err(Refusal::Conflicts(found));
    }
    let mut managers =
        without_changes(managers, &mut comparisons, |identity| !identity.same(&acting.identity));
    let changes = !path::same_members(live, &object);
    if let Some(own) = managers.0.iter_mut().find(|manager| manager.identity.same(&acting.identity)) {
        own.identity = acting.identity.clone();
        own.fields = std::mem::take(&mut own.fields).difference(&NEVER_OWNED);
        if changes {
            own.time = Some(acting.now.clone());
        }
    }
    managers.drop_empty();
    Ok(Applied { object, managers })
}

fn conflicts_with_others<V: Versions>(
    managers: &Managers,
    comparisons: &mut Comparisons<'_, V>,
    acting: &Identity,
) -> Vec<Conflict> {
    let conflict = |manager: &Manager| {
        let comparison = comparisons.of(&manager.identity.api_version)?;
        let fields = manager.fields.intersection(&comparison.modified);
        let fields = fields.union(&manager.fields.intersection(&comparison.added));
        (!fields.is_empty()).then(|| Conflict { with: manager.identity.clone(), fields })
    };
    let others = managers.0.iter().filter(|manager| !manager.identity.same(acting));
    let mut found: Vec<Conflict> = others.filter_map(conflict).collect();
    found.sort_by_cached_key(|conflict| conflict.with.key());
    found
}

/// Takes out what was applied last and is claimed by nobody any more, in the version it was applied in.
fn prune(
    versions: &impl Versions,
    merged: Object,
    managers: &Managers,
    last: &Manager,
    acting: &Acting,
) -> Object {
    let version = &acting.identity.api_version;
    let pruned_in = &last.identity.api_version;
    let Some(schema) = versions.schema(pruned_in).filter(|_| !last.fields.is_empty()) else {
        return merged;
    };
    let one_version = of_version(&merged, pruned_in)
        && managers.0.iter().all(|manager| manager.identity.api_version == *pruned_in);
    if one_version {
        let own = managers.find(&acting.identity).map(|own| &own.fields);
        if own.is_some_and(|own| reclaimed(schema, &last.fields, own)) {
            return merged;
        }
        let all = FieldSet::union_of(managers.0.iter().map(|manager| manager.fields.clone()).collect());
        if reclaimed(schema, &last.fields, &all) {
            return merged;
        }
        return prune_in(schema, &merged, &last.fields, &all);
    }
    prune_across(versions, schema, merged, managers, last, version)
}

/// In the only version there is.
fn prune_in(schema: &Schema, merged: &Object, last: &FieldSet, claimed: &FieldSet) -> Object {
    let named = |set: &FieldSet| set.with_named_fields(schema, schema.root());
    let has = |object: &Object| named(&owned(schema, object));
    let (gone, whole) = (named(last), has(merged));
    let left = remove(schema, merged, &gone);
    let kept = has(&left).union(&named(claimed));
    let pruned = remove(schema, merged, &whole.clone().difference(&kept));
    // Only what was applied last may go: fields that nobody owned stay, unless what holds them goes.
    remove(schema, merged, &whole.difference(&has(&pruned)).intersection(&gone))
}

/// Where managers have sets in other versions.
fn prune_across(
    versions: &impl Versions,
    schema: &Schema,
    merged: Object,
    managers: &Managers,
    last: &Manager,
    version: &str,
) -> Object {
    let in_version = |object: Object, version: &str| match of_version(&object, version) {
        true => object,
        false => versions.convert(&object, version),
    };
    let merged = in_version(merged, &last.identity.api_version);
    let gone = last.fields.with_named_fields(schema, schema.root());
    let mut pruned = remove(schema, &merged, &gone);
    let mut by_version: Vec<(&str, Vec<FieldSet>)> = Vec::new();
    for Manager { identity, fields, .. } in &managers.0 {
        if versions.schema(&identity.api_version).is_none() {
            continue;
        }
        match by_version.iter_mut().find(|(known, _)| *known == identity.api_version) {
            Some((_, sets)) => sets.push(fields.clone()),
            None => by_version.push((&identity.api_version, vec![fields.clone()])),
        }
    }
    // What conversions need may be among what is added back, so the pruned version comes first.
    by_version.sort_by_key(|(known, _)| *known != last.identity.api_version);
    for (known, sets) in by_version {
        let Some(schema) = versions.schema(known) else { continue };
        let claimed = FieldSet::union_of(sets);
        let whole = in_version(merged.clone(), known);
        let left = in_version(pruned, known);
        pruned = with_claimed(schema, &whole, &left, &claimed);
    }
    let pruned = in_version(pruned, &last.identity.api_version);
    in_version(without_dangling(schema, &merged, &pruned, &gone), version)
}

/// `whole` without what is neither in `left` nor claimed.
fn with_claimed(schema: &Schema, whole: &Object, left: &Object, claimed: &FieldSet) -> Object {
    let root = schema.root();
    let named = |set: FieldSet| set.with_named_fields(schema, root);
    let kept = named(owned(schema, left)).union(&claimed.with_named_fields(schema, root));
    remove(schema, whole, &named(owned(schema, whole)).difference(&kept))
}

/// Only what was applied last may go: fields that nobody owned stay, unless what holds them goes.
fn without_dangling(schema: &Schema, whole: &Object, left: &Object, last: &FieldSet) -> Object {
    let named = |object: &Object| owned(schema, object).with_named_fields(schema, schema.root());
    remove(schema, whole, &named(whole).difference(&named(left)).intersection(last))
}
