//! The parameters of LIST and WATCH before they are validated.

use super::super::ask::Parameters;
use super::super::query::Query;
use super::{Collection, Selection};
use crate::error::Error;
use crate::options::selector::field::FieldSelector;
use crate::options::selector::label::LabelSelector;

/// Parameters that are well-formed, but not validated. Empty strings mean absent parameters.
pub(in crate::options) struct Raw<'q> {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub version: &'q str,
    pub matching: &'q str,
    pub continued: &'q str,
    /// Zero and negative numbers mean no limit.
    pub limit: i64,
    /// Seconds.
    pub timeout: Option<i64>,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    /// Only looked at through the door `/ask/`.
    pub asked: Parameters<'q>,
}

impl<'q> Raw<'q> {
    pub fn parse(query: &'q Query) -> Result<Self, Error> {
        let timeout = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        Ok(Self {
            labels: LabelSelector::parse(query.text("labelSelector")).map_err(Error::BadRequest)?,
            fields: FieldSelector::parse(query.text("fieldSelector")).map_err(Error::BadRequest)?,
            version: query.text("resourceVersion"),
            matching: query.text("resourceVersionMatch"),
            continued: query.text("continue"),
            limit,
            timeout,
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            send_initial_events: query.flag("sendInitialEvents"),
            asked: Parameters::of(query),
        })
    }

    pub fn selection(self, collection: Collection<'_>) -> Result<Selection, Error> {
        let (fields, ask) = match collection.ask {
            None => (self.fields.resolve(collection.fields)?, None),
            Some(kind) => {
                let (fields, others) = self.fields.resolve_known(collection.fields);
                (fields, Some(self.asked.read(kind, others)?))
            }
        };
        let selected = fields.requires_exact_match("metadata.name");
        if collection.name.is_some() && !fields.is_empty() && selected != collection.name {
            return Err(Error::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let name = collection.name.or(selected).map(str::to_owned);
        let namespace = collection.namespace.or(fields.requires_exact_match("metadata.namespace"));
        let namespace = namespace.filter(|_| collection.namespaced).map(str::to_owned);
        Ok(Selection { labels: self.labels, fields, namespace, name, ask })
    }
}
