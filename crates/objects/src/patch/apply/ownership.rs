//! How a write changes the sets of all managers.

use super::compare::{Comparison, compare};
use super::conflict::Conflict;
use super::fields::FieldSet;
use super::filter::Filter;
use super::managers::{self, Acting, Identity, Manager, Managers, NEVER_OWNED};
use super::merge::merge;
use super::owned::owned;
use super::path;
use super::reclaimed::reclaimed;
use super::remove::remove;
use super::schema::Schema;
use super::validate::validate;
use crate::tree::{Map, Value};

type Object = Map;

/// The versions of a kind. Each manager's set is in the version in which that manager wrote.
pub trait Versions {
    /// The schema of a version; `None` if the version is not served.
    fn schema(&self, api_version: &str) -> Option<&Schema>;
    /// Converts the object to a served version.
    fn convert(&self, object: &Object, api_version: &str) -> Object;
    /// The fields that a request to this part of the object can own.
    fn filter(&self) -> &Filter;
}

/// The result of an apply.
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

/// The reaction of an apply to fields that other managers own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflicts {
    #[default]
    Refuse,
    Force,
}

/// Comparisons of the same two objects, made in every version that a manager uses.
struct Comparisons<'a, V> {
    versions: &'a V,
    old: &'a Object,
    new: &'a Object,
    /// Comparisons made so far, by version. There is rarely more than one.
    known: Vec<(String, Option<Comparison>)>,
}

impl<'a, V: Versions> Comparisons<'a, V> {
    /// The comparison in a version; `None` if the version is not served.
    fn of(&mut self, api_version: &str) -> Option<&Comparison> {
        let Self { versions, old, new, known } = self;
        // Checked first, so that only served versions are kept: managers may name any number of others.
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

/// The managers after a write other than an apply; `None` if ownership does not change.
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

/// The encoded managers, closed, of a new object without managers of its own. `zero` is the zero value of the kind.
pub fn encoded_first(
    versions: &impl Versions,
    zero: &Object,
    new: &Object,
    acting: &Acting,
) -> Option<Value> {
    first(versions, zero, new, acting)?.encode()
}

/// The only manager of an object that had no managers.
fn first(versions: &impl Versions, old: &Object, new: &Object, acting: &Acting) -> Option<Managers> {
    let comparisons = Comparisons { versions, old, new, known: Vec::new() };
    let all = comparisons.into_one(&acting.identity.api_version).filter(|all| !all.keyless)?;
    let fields = all.into_written().difference(&NEVER_OWNED);
    let manager = Manager { identity: acting.identity.clone(), time: Some(acting.now.clone()), fields };
    (!manager.fields.is_empty()).then(|| Managers(vec![manager]))
}

/// A write other than an apply: its manager takes the fields that it wrote from all others, and removed fields leave
/// everybody's set.
pub struct Update<'a, V> {
    comparisons: Comparisons<'a, V>,
    acting: &'a Acting,
    /// The changes of fields that can be owned, in the version of the write.
    own: Comparison,
}

impl<'a, V: Versions> Update<'a, V> {
    /// Compares the objects; `None` if the version of the write is not served.
    pub fn new(versions: &'a V, old: &'a Object, new: &'a Object, acting: &'a Acting) -> Option<Self> {
        let mut comparisons = Comparisons { versions, old, new, known: Vec::new() };
        let own = comparisons.of(&acting.identity.api_version)?.clone();
        let own = own.mapped(|set| set.difference(&NEVER_OWNED));
        Some(Self { comparisons, acting, own })
    }

    /// Whether upstream cannot tell who wrote what, so that the managers stay as they were.
    pub fn is_untraceable(&self) -> bool {
        self.own.keyless
    }

    /// The encoded managers, closed, without decoding them, if the write changes no set: it wrote only fields that its
    /// manager alone owns, and removed none that anybody owns. `None` if that is not so, or not easy to see.
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

    /// The managers after the write; `None` if ownership does not change.
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

/// Removes changed fields from the sets of the managers, and drops managers in versions that are not served.
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

/// Merges `config` into `live`, removes fields that the applier has dropped and nobody else owns, and updates
/// ownership. Neither object has managedFields.
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

/// Removes fields that the manager applied last time and nobody claims any more. Works in the version of that last
/// apply.
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

/// Prunes if there is only one version.
fn prune_in(schema: &Schema, merged: &Object, last: &FieldSet, claimed: &FieldSet) -> Object {
    let named = |set: &FieldSet| set.with_named_fields(schema, schema.root());
    let has = |object: &Object| named(&owned(schema, object));
    let (gone, whole) = (named(last), has(merged));
    let left = remove(schema, merged, &gone);
    let kept = has(&left).union(&named(claimed));
    let pruned = remove(schema, merged, &whole.clone().difference(&kept));
    // Only fields of the last apply may go: fields that nobody owned stay, unless their container goes.
    remove(schema, merged, &whole.difference(&has(&pruned)).intersection(&gone))
}

/// Prunes if managers have sets in other versions.
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
    // The pruned version comes first: conversions to other versions may need fields that are put back there.
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

/// `whole` without the fields that are neither in `left` nor claimed.
fn with_claimed(schema: &Schema, whole: &Object, left: &Object, claimed: &FieldSet) -> Object {
    let root = schema.root();
    let named = |set: FieldSet| set.with_named_fields(schema, root);
    let kept = named(owned(schema, left)).union(&claimed.with_named_fields(schema, root));
    remove(schema, whole, &named(owned(schema, whole)).difference(&kept))
}

/// Removes from `whole` those fields of the last apply that `left` lacks: fields that nobody owned stay, unless their
/// container goes.
fn without_dangling(schema: &Schema, whole: &Object, left: &Object, last: &FieldSet) -> Object {
    let named = |object: &Object| owned(schema, object).with_named_fields(schema, schema.root());
    remove(schema, whole, &named(whole).difference(&named(left)).intersection(last))
}
