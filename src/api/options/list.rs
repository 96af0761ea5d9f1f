//! Options of LIST and deletecollection, and what they share with WATCH.

mod raw;

use std::num::NonZeroU64;

use super::query::Query;
use super::{ReadAt, parse_revision};
use crate::api::continue_token::{ContinueToken, Scope, TokenKeys};
use crate::api::error::Error;
use crate::api::selector::field::FieldSelector;
use crate::api::selector::label::{LabelSelector, Requirement};
use crate::causes::Cause;
use crate::codec::object::Object;
use crate::gotext;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::long_work::decoding;
use crate::revision::Revision;
use crate::schema::names::GroupResource;

pub(super) use raw::Raw;

/// What the path and the resource say about a collection.
#[derive(Clone, Copy)]
pub struct Collection<'a> {
    pub resource: &'a GroupResource,
    pub namespaced: bool,
    /// From the path; `None` for all namespaces and for cluster-scoped resources.
    pub namespace: Option<&'a str>,
    /// From the deprecated path `/watch/…/{name}`.
    pub name: Option<&'a str>,
    pub fields: &'a SelectableFields,
}

/// Which objects of a collection are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub labels: LabelSelector,
    /// Resolved; still to be matched even where `namespace` and `name` narrow the range.
    pub fields: FieldSelector,
    /// The one namespace in which matches can be.
    pub namespace: Option<String>,
    /// The one name that matches can have.
    pub name: Option<String>,
}

impl Selection {
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none()
    }

    /// Whether it asks for fields that only a decoded object tells.
    pub fn decodes(&self) -> bool {
        let in_key = |field: &str| matches!(field, "metadata.name" | "metadata.namespace");
        self.fields.terms().iter().any(|term| !in_key(&term.field))
    }

    /// What looking at an object takes.
    pub fn effort(&self) -> Effort {
        let requirements = self.labels.requirements().iter().map(Requirement::comparisons);
        let steps = 1 + requirements.chain([self.fields.terms().len()]).sum::<usize>() / 4;
        Effort { steps, decodes: self.decodes() }
    }
}

/// The steps of a scan that a selection takes for each object.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    steps: usize,
    decodes: bool,
}

impl Effort {
    pub fn of(self, object: &Object) -> usize {
        self.steps + if self.decodes { decoding(object.size()) } else { 0 }
    }
}

/// Which state a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListAt {
    /// Every write answered before the request arrived.
    Latest,
    /// Whatever is at hand.
    Any,
    /// This revision or newer.
    AtLeast(Revision),
    /// This very revision, or 410.
    Exactly(Revision),
    /// The page after the one that gave this token.
    Token(ContinueToken),
}

/// Options of LIST and of deletecollection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    pub selection: Selection,
    pub at: ListAt,
    /// The largest number of items of a page.
    pub limit: Option<NonZeroU64>,
}

impl ListOptions {
    /// Errors in upstream's order: parsing (400), validation (422), fields, name, token, revision (400).
    pub fn parse(query: &Query, collection: Collection<'_>, keys: &TokenKeys) -> Result<Self, Error> {
        let raw = Raw::parse(query)?;
        raw.validate_list()?;
        let limit = u64::try_from(raw.limit).ok().and_then(NonZeroU64::new);
        let (version, continued, matching) = (raw.version, raw.continued, raw.matching);
        let selection = raw.selection(collection)?;
        let one_key = selection.name.is_some() && (selection.namespace.is_some() || !collection.namespaced);
        let at = if continued.is_empty() {
            // Upstream's legacy rule: N with a limit is exact, except where it looks up a single key.
            let exact = matching == "Exact" || (matching.is_empty() && limit.is_some() && !one_key);
            list_at(version, exact)?
        } else {
            next_page(continued, version, collection, keys)?
        };
        Ok(Self { selection, at, limit })
    }
}

/// Does the request watch instead of list? (`watch` is true for any value but `0` and `false`.)
pub fn is_watch(query: &Query) -> bool {
    query.flag("watch").unwrap_or(false)
}

fn list_at(version: &str, exact: bool) -> Result<ListAt, Error> {
    Ok(match ReadAt::parse(version)? {
        ReadAt::Latest => ListAt::Latest,
        ReadAt::Any => ListAt::Any,
        ReadAt::AtLeast(revision) if exact => ListAt::Exactly(revision),
        ReadAt::AtLeast(revision) => ListAt::AtLeast(revision),
    })
}

fn next_page(
    continued: &str,
    version: &str,
    collection: Collection<'_>,
    keys: &TokenKeys,
) -> Result<ListAt, Error> {
    let scope = Scope { resource: collection.resource, namespace: collection.namespace };
    let token = keys.decode(continued, scope)?;
    if !matches!(version, "" | "0") {
        return Err(Error::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(ListAt::Token(token))
}

/// The revision after which a plain watch starts, unless it is "now".
pub(super) fn watch_after(version: &str) -> Result<Option<Revision>, Error> {
    if version.is_empty() {
        return Ok(None);
    }
    Ok(Some(parse_revision(version)?).filter(|revision| revision.0 > 0))
}

impl Raw<'_> {
    pub(super) fn validate_list(&self) -> Result<(), Error> {
        let mut causes = Vec::new();
        if !self.matching.is_empty() {
            self.validate_match(&mut causes);
        }
        if self.send_initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            causes.push(Cause::forbidden("sendInitialEvents", why));
        }
        refuse(causes)
    }

    fn validate_match(&self, causes: &mut Vec<Cause>) {
        let mut forbid = |why: &str| causes.push(Cause::forbidden("resourceVersionMatch", why));
        if self.version.is_empty() {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !self.continued.is_empty() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if !matches!(self.matching, "Exact" | "NotOlderThan") {
            let value = gotext::json(&self.matching.into());
            let supported = ["Exact", "NotOlderThan", ""];
            causes.push(Cause::not_supported("resourceVersionMatch", value, &supported));
        } else if self.matching == "Exact" && self.version == "0" {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
    }
}

/// 422 if there are causes.
pub(super) fn refuse(causes: Vec<Cause>) -> Result<(), Error> {
    if causes.is_empty() { Ok(()) } else { Err(Error::invalid_options("ListOptions", causes)) }
}

#[cfg(test)]
mod tests;
