//! Whether an apply gives anything up.
//!
//! Pruning takes out what was applied last, puts back what anybody claims, and then what nobody may take: it goes through
//! the whole object several times. Here is when it comes to nothing, which mostly is so, and is seen on the sets alone.

use super::fields::{Entry, FieldSet};
use super::path::{PathElement, Plain};
use super::schema::{DEDUCED, Schema, TypeId};

/// Whether `claimed` has all of `last`, and all that holds it: then nothing of it is ever out.
///
/// An element of a list has to keep its name, too, when what nobody claims is taken out of it. False where that is not
/// easily seen.
pub fn reclaimed(schema: &Schema, last: &FieldSet, claimed: &FieldSet) -> bool {
    level(schema, schema.root(), last, claimed)
}

fn level(schema: &Schema, id: TypeId, last: &FieldSet, claimed: &FieldSet) -> bool {
    let atom = schema.atom(id);
    // Both are sorted.
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

/// Whether what is claimed of an element tells it from all others.
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
