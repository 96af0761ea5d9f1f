//! Whether an apply drops any field.
//!
//! Pruning visits the whole object several times: it removes the fields of the last apply, puts back what anybody
//! claims, and then what must not be removed. Usually nothing is dropped, which can be seen from the sets alone.

use super::fields::{Entry, FieldSet};
use super::path::{PathElement, Plain};
use super::schema::{DEDUCED, Schema, TypeId};

/// Whether `claimed` contains all paths of `last` and their containers, so that pruning would remove nothing.
///
/// A list element must also keep its key fields when unclaimed fields are removed from it. Returns false if that is not
/// easy to see.
pub fn reclaimed(schema: &Schema, last: &FieldSet, claimed: &FieldSet) -> bool {
    level(schema, schema.root(), last, claimed)
}

fn level(schema: &Schema, id: TypeId, last: &FieldSet, claimed: &FieldSet) -> bool {
    let atom = schema.atom(id);
    // Both sets are sorted.
    let mut claims = claimed.entries();
    last.entries().all(|entry| {
        let Some(claim) = claims.find(|claim| claim.element >= entry.element) else { return false };
        if claim.element != entry.element {
            return false;
        }
        let (declared, below) = match (entry.element, &atom.map, &atom.list) {
            (PathElement::Field(name), Some(map), _) => (map.declares(name), map.member(name)),
            (PathElement::Key(_), _, Some(list)) => (false, list.element),
            _ => (false, DEDUCED),
        };
        let stays = declared || (entry.member && claim.member && keeps_name(schema, below, claim));
        stays && level(schema, below, entry.below, claim.below)
    })
}

/// Whether the claimed fields of a list element include those that identify it.
fn keeps_name(schema: &Schema, id: TypeId, claim: Entry<'_>) -> bool {
    let PathElement::Key(key) = claim.element else { return true };
    let fields = schema.atom(id).map.as_ref().map(|map| &map.fields);
    let is_default = |(name, value): &(_, Plain)| {
        let default = fields.and_then(|fields| fields.get(name)?.default.as_ref());
        default.is_some_and(|default| Plain(default.clone()) == *value)
    };
    let is_claimed = |name: &std::sync::Arc<str>| claim.below.has(&PathElement::Field(name.clone()));
    let mut said = false;
    key.iter().all(|field| {
        let default = is_default(field);
        let claimed = !default && is_claimed(&field.0);
        said |= claimed;
        default || claimed
    }) && said
}
