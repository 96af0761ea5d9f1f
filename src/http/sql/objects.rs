//! The table of a kind: its objects in the cache's state, or as of a revision in the store.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use rowplane_sql::{Cell, Column, Error as SqlError, Lookup, Row, Rows, Table};

use super::cells;
use super::columns::{Columns, NAME, NAMESPACE, Source};
use super::past;
use super::rights::Visible;
use super::session::{Session, full_name};
use super::wanted::{Found, Wanted};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::cache::Objects;
use crate::codec::object::Object;
use crate::http::past::LOOK_BACK;

/// The size by which the planner reckons where the number of rows is not the user's to know.
const UNKNOWN_SIZE: u64 = 1_000;

/// The table of a kind.
pub struct ObjectTable {
    session: Arc<Session>,
    resource: Arc<Resource>,
    columns: Arc<Columns>,
    visible: Visible,
    /// Known once a statement asks for a time.
    past: OnceLock<Visible>,
    objects: Objects,
}

/// An object as a row.
pub struct ObjectRow {
    object: Arc<Object>,
    resource: Arc<Resource>,
    columns: Arc<Columns>,
    /// The object as clients are served it, where that is not how it is stored.
    converted: OnceLock<Result<Option<Box<[u8]>>, Error>>,
}

impl ObjectTable {
    /// The table with the rows that the user may see.
    pub fn open(session: &Arc<Session>, resource: &Arc<Resource>) -> Result<Self, SqlError> {
        let visible = session.runtime.block_on(session.visible(resource, &["list"]));
        let visible = visible.map_err(SqlError::table)?;
        let (session, resource) = (session.clone(), resource.clone());
        let columns = Arc::new(Columns::of(&resource));
        let objects = session.state.objects(resource.id);
        Ok(Self { session, resource, columns, visible, past: OnceLock::new(), objects })
    }

    pub fn visible(&self) -> &Visible {
        &self.visible
    }

    /// The objects that a lookup wants and the user may see.
    pub fn find(&self, lookup: &Lookup) -> Result<Found, SqlError> {
        let revision = match &lookup.at {
            Some(time) => Some(past::revision_of(&self.session, time).map_err(SqlError::table)?),
            None => self.session.as_of,
        };
        let found: Found = match revision {
            None => Box::new(self.wanted(lookup, &self.visible).of(self.objects.clone())),
            Some(revision) => {
                let wanted = self.wanted(lookup, self.visible_past()?);
                past::objects(&self.session, &self.resource, wanted, revision)?
            }
        };
        let session = self.session.clone();
        Ok(Box::new(found.filter(move |found| !is_skipped(&session, found)).map(readable)))
    }

    /// The part of the resource whose past the user may see.
    fn visible_past(&self) -> Result<&Visible, SqlError> {
        if let Some(visible) = self.past.get() {
            return Ok(visible);
        }
        let session = &self.session;
        let visible = session.runtime.block_on(session.visible(&self.resource, &["list", LOOK_BACK]));
        let visible = visible.map_err(SqlError::table)?;
        session.warn_of(&format!("{} of the past", full_name(&self.resource)), &visible);
        Ok(self.past.get_or_init(|| visible))
    }

    pub fn row(&self, object: Arc<Object>) -> ObjectRow {
        let (resource, columns) = (self.resource.clone(), self.columns.clone());
        ObjectRow { object, resource, columns, converted: OnceLock::new() }
    }

    fn wanted(&self, lookup: &Lookup, visible: &Visible) -> Wanted {
        if !self.resource.definition.namespaced() {
            return match (visible, lookup.key.first()) {
                (Visible::Everything, None) => Wanted::ranges(None),
                (Visible::Everything, Some(names)) => Wanted::keys([String::new()].into(), names),
                _ => Wanted::default(),
            };
        }
        let namespaces: Option<BTreeSet<String>> = match (visible, lookup.key.first()) {
            (visible, Some(namespaces)) => {
                Some(namespaces.iter().filter(|namespace| visible.has(namespace)).cloned().collect())
            }
            (Visible::Everything, None) => None,
            (Visible::Namespaces(namespaces), None) => {
                Some(namespaces.iter().map(|namespace| namespace.to_string()).collect())
            }
            (Visible::Nothing, None) => Some(BTreeSet::new()),
        };
        match (namespaces, lookup.key.get(1)) {
            (Some(namespaces), Some(names)) => Wanted::keys(namespaces, names),
            (namespaces, _) => Wanted::ranges(namespaces),
        }
    }
}

/// An object that cannot be decoded fails a statement, as it fails a list.
fn readable(found: Result<Arc<Object>, SqlError>) -> Result<Arc<Object>, SqlError> {
    let object = found?;
    match object.json() {
        Ok(_) => Ok(object),
        Err(error) => Err(SqlError::table(Error::from(error))),
    }
}

/// Whether an object cannot be decoded, and the statement goes on without such objects.
fn is_skipped(session: &Session, found: &Result<Arc<Object>, SqlError>) -> bool {
    let is_broken = session.skips_broken && found.as_ref().is_ok_and(|object| object.json().is_err());
    if is_broken {
        session.notes.broken.fetch_add(1, Ordering::Relaxed);
    }
    is_broken
}

impl Table for ObjectTable {
    fn columns(&self) -> &[Column] {
        &self.columns.declared
    }

    fn key(&self) -> &[usize] {
        if self.resource.definition.namespaced() { &[NAMESPACE, NAME] } else { &[NAME] }
    }

    fn has_times(&self) -> bool {
        true
    }

    fn size(&self) -> u64 {
        match self.visible {
            Visible::Everything => self.objects.len() as u64,
            Visible::Namespaces(_) | Visible::Nothing => UNKNOWN_SIZE,
        }
    }

    fn rows(&self, lookup: &Lookup) -> Result<Rows, SqlError> {
        let (resource, columns) = (self.resource.clone(), self.columns.clone());
        let row = move |object: Result<Arc<Object>, SqlError>| {
            let (resource, columns, converted) = (resource.clone(), columns.clone(), OnceLock::new());
            Ok(Arc::new(ObjectRow { object: object?, resource, columns, converted }) as Arc<dyn Row>)
        };
        Ok(Box::new(self.find(lookup)?.map(row)))
    }
}

impl ObjectRow {
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The JSON text of the object as clients are served it.
    pub fn json(&self) -> Result<&[u8], Error> {
        let converted = self.converted.get_or_init(|| {
            if self.resource.serves_as_stored(&self.object) {
                return Ok(None);
            }
            let served = self.resource.decode(&self.object)?;
            let json = serde_json::to_vec(&served).map_err(|error| Error::Internal(error.to_string()))?;
            Ok(Some(json.into()))
        });
        match converted {
            Ok(Some(json)) => Ok(json),
            Ok(None) => Ok(self.object.json()?),
            Err(error) => Err(error.clone()),
        }
    }
}

impl Row for ObjectRow {
    fn cell(&self, column: usize) -> Result<Cell<'_>, SqlError> {
        let Some(source) = self.columns.sources.get(column) else { return Ok(Cell::Null) };
        if matches!(source, Source::Namespace | Source::Name | Source::Revision) {
            return Ok(cells::cell(&self.object, b"", source));
        }
        let json = self.json().map_err(SqlError::table)?;
        Ok(cells::cell(&self.object, json, source))
    }
}
