//! Options of LIST and deletecollection, and those that WATCH shares.

mod raw;

use std::num::NonZeroU64;
use std::sync::Arc;

use super::ask::Ask;
use super::query::Query;
use super::{ReadAt, parse_revision};
use crate::causes::Cause;
use crate::codec::object::Object;
use crate::error::Error;
use crate::gotext;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::long_work::decoding;
use crate::options::continue_token::{ContinueToken, Scope, TokenKeys};
use crate::options::selector::field::FieldSelector;
use crate::options::selector::label::{LabelSelector, Requirement};
use crate::revision::Revision;
use crate::schema::kind::Kind;
use crate::schema::names::GroupResource;

pub(super) use raw::Raw;

/// The facts about a collection by which its options are parsed.
#[derive(Clone, Copy)]
pub struct Collection<'a> {
    pub resource: &'a GroupResource,
    pub namespaced: bool,
    /// The namespace in the path; `None` for all namespaces and for cluster-scoped resources.
    pub namespace: Option<&'a str>,
    /// The name in the deprecated path `/watch/…/{name}`.
    pub name: Option<&'a str>,
    pub fields: &'a SelectableFields,
    /// The revision of the door to the past through which the request came.
    pub door: Option<Revision>,
    /// The kind, if the request came through the door `/ask/`.
    pub ask: Option<&'a Kind>,
}

/// The objects of a collection that the request selects; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub labels: LabelSelector,
    /// The field selector, resolved to the kind's fields. It must be matched even if `namespace` and `name` narrow the range.
    pub fields: FieldSelector,
    /// The only namespace in which objects can match.
    pub namespace: Option<String>,
    /// The only name that matching objects can have.
    pub name: Option<String>,
    /// The parameters of a request through the door `/ask/`.
    pub ask: Option<Arc<Ask>>,
}

impl Selection {
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none() && !self.asks()
    }

    /// Whether parameters of the door `/ask/` select.
    pub fn asks(&self) -> bool {
        self.ask.as_ref().is_some_and(|ask| ask.selects_some())
    }

    /// The parameter that orders the list; empty for the order of keys.
    pub fn order(&self) -> &str {
        let order = self.ask.as_ref().and_then(|ask| ask.order.as_ref());
        order.map_or("", |order| &order.text)
    }

    /// Whether the selection has fields that require a decoded object.
    pub fn decodes(&self) -> bool {
        let in_key = |field: &str| matches!(field, "metadata.name" | "metadata.namespace");
        self.fields.terms().iter().any(|term| !in_key(&term.field))
    }

    /// Whether more than the object's key decides.
    pub fn looks_inside(&self) -> bool {
        !self.labels.is_empty() || self.decodes() || self.asks()
    }

    /// The selection by namespace and name alone.
    pub fn by_key(&self) -> Self {
        Self {
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ask: None,
        }
    }

    /// The effort of matching an object.
    pub fn effort(&self) -> Effort {
        let requirements = self.labels.requirements().iter().map(Requirement::comparisons);
        let steps = 1 + requirements.chain([self.fields.terms().len()]).sum::<usize>() / 4;
        Effort { steps, decodes: self.decodes() || self.asks() }
    }
}

/// How many steps of a scan matching one object counts as.
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

/// The state that a list reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListAt {
    /// A state that contains every write that was answered before the request arrived.
    Latest,
    /// Any state.
    Any,
    /// A state at this revision or a newer one.
    AtLeast(Revision),
    /// The state at exactly this revision; otherwise 410.
    Exactly(Revision),
    /// The page after the one that contained this token.
    Token(ContinueToken),
}

/// Options of LIST and of deletecollection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    pub selection: Selection,
    pub at: ListAt,
    /// The most items of a page.
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
            // Upstream's legacy rule: a revision together with a limit means exactly that revision, except for a single
            // key.
            let exact = matching == "Exact" || (matching.is_empty() && limit.is_some() && !one_key);
            list_at(version, exact)?
        } else {
            next_page(continued, version, (collection, selection.order()), keys)?
        };
        Ok(Self { selection, at, limit })
    }
}

/// Whether the request is a watch: `watch` is true for any value but `0` and `false`.
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
    (collection, order): (Collection<'_>, &str),
    keys: &TokenKeys,
) -> Result<ListAt, Error> {
    let Collection { resource, namespace, door, .. } = collection;
    let scope = Scope { resource, namespace, door, order };
    let token = keys.decode(continued, scope)?;
    if !matches!(version, "" | "0") {
        return Err(Error::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(ListAt::Token(token))
}

/// The revision after which a plain watch starts; `None` means "now".
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
