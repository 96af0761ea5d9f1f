//! `changes`: who changed what and when, newest first, as far back as history goes.

use std::sync::Arc;

use rowplane_sql::{Cell, Column, ColumnType, Error as SqlError, Lookup, Row, Rows, Table};

use super::super::past;
use super::super::rights::Visible;
use super::super::session::{Session, full_name};
use super::columns;
use crate::api::error::Error;
use crate::api::options::{GetOptions, ReadAt};
use crate::api::resource::Resource;
use crate::api::{Target, verbs};
use crate::http::past::LOOK_BACK;
use crate::revision::Revision;
use crate::storage::{ChangeFilter, ChangeKind, ChangeOfPast, Writer};

const COLUMNS: &[(&str, ColumnType)] = &[
    ("revision", ColumnType::Integer),
    ("time", ColumnType::Text),
    ("event", ColumnType::Text),
    ("resource", ColumnType::Text),
    ("namespace", ColumnType::Text),
    ("name", ColumnType::Text),
    ("uid", ColumnType::Text),
    ("username", ColumnType::Text),
    ("impersonator", ColumnType::Text),
    ("verb", ColumnType::Text),
    ("subresource", ColumnType::Text),
    ("manager", ColumnType::Text),
    ("client", ColumnType::Text),
];
/// The object after the change and before it, which are read one by one when they are asked for.
const VALUES: &[(&str, ColumnType)] = &[("object", ColumnType::Text), ("previous", ColumnType::Text)];
const RESOURCE: usize = 3;
const NAMESPACE: usize = 4;

/// Changes that are read at a time.
const PAGE: u32 = 1_000;

struct ChangeTable {
    session: Arc<Session>,
    columns: Vec<Column>,
}

/// The changes of resources that the user may list and look back on.
pub fn table(session: &Arc<Session>) -> Arc<dyn Table> {
    let mut declared = columns(COLUMNS);
    declared.extend(columns(VALUES).into_iter().map(|column| Column { is_hidden: true, ..column }));
    Arc::new(ChangeTable { session: session.clone(), columns: declared })
}

impl Table for ChangeTable {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn key(&self) -> &[usize] {
        &[RESOURCE, NAMESPACE]
    }

    fn size(&self) -> u64 {
        100_000
    }

    fn rows(&self, lookup: &Lookup) -> Result<Rows, SqlError> {
        let filters = self.filters(lookup).map_err(SqlError::table)?;
        let pages = filters.into_iter().flat_map({
            let session = self.session.clone();
            move |filter| Pages::new(session.clone(), filter)
        });
        let session = self.session.clone();
        Ok(Box::new(pages.filter_map(move |change| match change {
            Ok(change) => {
                let resource = session.served.by_id(change.resource)?.clone();
                let session = session.clone();
                Some(Ok(Arc::new(ChangeRow { session, resource, change }) as Arc<dyn Row>))
            }
            Err(error) => Some(Err(SqlError::table(error))),
        })))
    }
}

impl ChangeTable {
    /// The changes that are wanted and may be seen: of each resource, so that the time of an answer tells nothing of others.
    fn filters(&self, lookup: &Lookup) -> Result<Vec<ChangeFilter>, Error> {
        let session = &self.session;
        let (resources, namespaces) = (lookup.key.first(), lookup.key.get(1));
        let mut found: Vec<(String, Arc<Resource>)> = session
            .resources()
            .iter()
            .map(|(name, resource)| (name.clone(), resource.clone()))
            .filter(|(name, resource)| *name == full_name(resource))
            .filter(|(name, _)| resources.is_none_or(|wanted| wanted.contains(name)))
            .collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (mut filters, mut hidden) = (Vec::new(), 0);
        for (_, resource) in &found {
            let visible = past::wait(session, session.visible(resource, &["list", LOOK_BACK]))??;
            hidden += usize::from(visible != Visible::Everything);
            let chosen: Vec<Option<Box<str>>> = match (&visible, namespaces) {
                (Visible::Everything, None) => vec![None],
                (visible, Some(wanted)) => wanted
                    .iter()
                    .filter(|namespace| visible.has(namespace))
                    .map(|namespace| Some(namespace.as_str().into()))
                    .collect(),
                (Visible::Namespaces(namespaces), None) => namespaces.iter().cloned().map(Some).collect(),
                (Visible::Nothing, None) => Vec::new(),
            };
            let of = |namespace| ChangeFilter { resource: Some(resource.id), namespace };
            filters.extend(chosen.into_iter().map(of));
        }
        if hidden > 0 {
            let user = &session.user.name;
            session.warn(format!(
                "changes: {hidden} resources as far as \"{user}\" may list them and look back"
            ));
        } else if resources.is_none() && namespaces.is_none() {
            return Ok(vec![ChangeFilter::default()]);
        }
        Ok(filters)
    }
}

/// Changes in pages, for the thread of a statement.
struct Pages {
    session: Arc<Session>,
    filter: ChangeFilter,
    /// `None` behind the last page.
    before: Option<Revision>,
    ready: std::vec::IntoIter<ChangeOfPast>,
}

impl Pages {
    fn new(session: Arc<Session>, filter: ChangeFilter) -> Self {
        let newest = session.as_of.unwrap_or(session.state.revision);
        Self { session, filter, before: Some(Revision(newest.0 + 1)), ready: Vec::new().into_iter() }
    }

    fn fill(&mut self, before: Revision) -> Result<(), Error> {
        let api = &self.session.app.api;
        let reading = api.changes_between(&self.filter, Some(before), Revision(0), PAGE);
        let page = past::wait(&self.session, reading)??;
        self.before = page.last().filter(|_| page.len() == PAGE as usize).map(|last| last.revision);
        self.ready = page.into_iter();
        Ok(())
    }
}

impl Iterator for Pages {
    type Item = Result<ChangeOfPast, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(change) = self.ready.next() {
                return Some(Ok(change));
            }
            let before = self.before.take()?;
            if let Err(error) = self.fill(before) {
                return Some(Err(error));
            }
        }
    }
}

struct ChangeRow {
    session: Arc<Session>,
    resource: Arc<Resource>,
    change: ChangeOfPast,
}

impl ChangeRow {
    /// The object as of a revision; NULL if there was none, or if that state is not kept.
    fn object(&self, at: Option<Revision>) -> Result<Cell<'static>, SqlError> {
        let Some(at) = at else { return Ok(Cell::Null) };
        let ChangeOfPast { namespace, name, .. } = &self.change;
        let target = Target { resource: &self.resource, namespace, name };
        let reading = self.session.app.api.get_as_of(target, GetOptions { at: ReadAt::Latest }, at);
        match past::wait(&self.session, reading).map_err(SqlError::table)? {
            Ok(object) => {
                let json = object.json().map_err(|error| SqlError::table(Error::from(error)))?;
                Ok(Cell::text(String::from_utf8_lossy(json).into_owned()))
            }
            Err(Error::NotFound { .. } | Error::Expired { .. }) => Ok(Cell::Null),
            Err(error) => Err(SqlError::table(error)),
        }
    }
}

impl Row for ChangeRow {
    fn cell(&self, column: usize) -> Result<Cell<'_>, SqlError> {
        let ChangeOfPast { revision, committed_ms, event, previous, uid, writer, namespace, name, .. } =
            &self.change;
        let of_writer = |text: fn(&Writer) -> &str| {
            Cell::maybe_text(writer.as_ref().map(text).filter(|text| !text.is_empty()))
        };
        Ok(match column {
            0 => Cell::Integer(revision.0.cast_signed()),
            1 => Cell::maybe_text(committed_ms.map(verbs::past::time)),
            2 => Cell::text(match event {
                ChangeKind::Added => "ADDED",
                ChangeKind::Modified => "MODIFIED",
                ChangeKind::Deleted => "DELETED",
            }),
            RESOURCE => Cell::text(full_name(&self.resource)),
            NAMESPACE => Cell::maybe_text(Some(&**namespace).filter(|namespace| !namespace.is_empty())),
            5 => Cell::text(&**name),
            6 => Cell::maybe_text(Some(&**uid).filter(|uid| !uid.is_empty())),
            7 => of_writer(|writer| &writer.username),
            8 => of_writer(|writer| &writer.impersonator),
            9 => of_writer(|writer| &writer.verb),
            10 => of_writer(|writer| &writer.subresource),
            11 => of_writer(|writer| &writer.manager),
            12 => of_writer(|writer| &writer.client),
            13 => self.object(Some(*revision).filter(|_| *event != ChangeKind::Deleted))?,
            14 => self.object(*previous)?,
            _ => Cell::Null,
        })
    }
}
