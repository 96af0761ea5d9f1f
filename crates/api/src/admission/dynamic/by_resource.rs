//! Webhooks and policies in their order, found by the resource that a request is for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::follow::{Content, Index};
use crate::admission::Attempt;
use crate::error::Error;
use crate::tree::Text;

/// A list with an index of its entries by the resources that they may be about.
pub struct ByResource<T> {
    list: Vec<T>,
    /// The places of the entries that name resources, by the plurals of these.
    named: HashMap<Text, Vec<usize>>,
    /// The places of the entries that may be about any resource.
    general: Vec<usize>,
}

impl<T> ByResource<T> {
    /// `plurals` says which resources one names; `None` if it may be about any.
    pub fn new(list: Vec<T>, plurals: impl Fn(&T) -> Option<BTreeSet<Text>>) -> Self {
        let (mut named, mut general) = (HashMap::<Text, Vec<usize>>::new(), Vec::new());
        for (place, one) in list.iter().enumerate() {
            match plurals(one) {
                Some(plurals) => {
                    plurals.into_iter().for_each(|plural| named.entry(plural).or_default().push(place))
                }
                None => general.push(place),
            }
        }
        Self { list, named, general }
    }

    pub fn all(&self) -> &[T] {
        &self.list
    }

    /// The entries that may be about a resource, with their places, in order. Of thousands, most are about other
    /// resources.
    pub fn about(&self, plural: &str) -> impl Iterator<Item = (usize, &T)> {
        let mut named = self.named.get(plural).map_or(&[][..], Vec::as_slice);
        let mut general = &*self.general;
        std::iter::from_fn(move || {
            let next = match (named.split_first(), general.split_first()) {
                (Some((place, rest)), other) if other.is_none_or(|(other, _)| place < other) => {
                    named = rest;
                    place
                }
                (_, other) => {
                    let (place, rest) = other?;
                    general = rest;
                    place
                }
            };
            Some((*next, self.list.get(*next)?))
        })
    }

    /// Whether one of them may be about a resource.
    pub fn has_any_about(&self, plural: &str) -> bool {
        !self.general.is_empty() || self.named.contains_key(plural)
    }
}

/// The entries that an index has in force, if one of them may be about the resource of a request; for some requests, only
/// those from files.
pub fn in_force<T, C: Content<Snapshot = Arc<ByResource<T>>>>(
    index: &Index<C>,
    attempt: &Attempt<'_>,
    of_files_alone: bool,
) -> Result<Option<Arc<ByResource<T>>>, Error> {
    let all = match of_files_alone {
        true => index.of_files(),
        false => index.newest(attempt.cluster)?,
    };
    Ok(all.filter(|all| all.has_any_about(attempt.plural())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_about_a_resource_is_looked_at_in_order() {
        let list = vec![
            ("a", Some(vec!["secrets", "pods"])),
            ("b", None),
            ("c", Some(vec!["configmaps"])),
            ("d", Some(vec!["secrets"])),
            ("e", None),
        ];
        let list = ByResource::new(list, |(_, plurals)| {
            plurals.as_ref().map(|plurals| plurals.iter().map(|plural| Text::from(*plural)).collect())
        });
        let about = |plural: &str| -> String {
            list.about(plural)
                .inspect(|(place, one)| assert_eq!(list.all()[*place].0, one.0))
                .map(|(_, one)| one.0)
                .collect()
        };
        assert_eq!(["secrets", "configmaps", "pods", "nodes"].map(about), ["abde", "bce", "abe", "be"]);
        assert!(list.has_any_about("nodes"));
        let list = ByResource::new(vec!["pods"], |plural| Some(BTreeSet::from([Text::from(*plural)])));
        assert_eq!(["pods", "nodes"].map(|plural| list.has_any_about(plural)), [true, false]);
    }
}
