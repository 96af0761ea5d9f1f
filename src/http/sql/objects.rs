//! The table of a kind: its objects in the cache's state, or as of a revision in the store.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use rowplane_sql::{Cell, Column, Error as SqlError, Lookup, Row, Rows, Table};

use super::cells;
use super::columns::{Columns, NAME, NAMESPACE, Source};
use super::past;
use super::rights::Visible;
use super::session::{Session, full_name};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::cache::{Objects, Range};
use crate::codec::object::Object;
use crate::http::past::LOOK_BACK;

/// Objects that are taken from a state at a time.
const CHUNK: usize = 256;
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
    pub fn new(session: Arc<Session>, resource: Arc<Resource>, visible: Visible) -> Self {
        let columns = Arc::new(Columns::of(&resource));
        let objects = session.state.objects(resource.id);
        Self { session, resource, columns, visible, past: OnceLock::new(), objects }
    }

    pub fn visible(&self) -> &Visible {
        &self.visible
    }

    /// The objects that a lookup wants and the user may see.
    pub fn find(&self, lookup: &Lookup) -> Result<Found, SqlError> {
        let revision = match &lookup.at {
            Some(time) => Some(self.session.revision_of(time).map_err(SqlError::table)?),
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
        session.broken.fetch_add(1, Ordering::Relaxed);
    }
    is_broken
}

/// Objects one after the other.
pub type Found = Box<dyn Iterator<Item = Result<Arc<Object>, SqlError>> + Send>;

/// The part of a resource that a lookup wants.
#[derive(Default)]
pub struct Wanted {
    /// Namespaces and names of single objects.
    pub keys: VecDeque<(String, String)>,
    /// Namespaces; `None` for all of them.
    pub namespaces: VecDeque<Option<String>>,
}

impl Wanted {
    fn keys(namespaces: BTreeSet<String>, names: &BTreeSet<String>) -> Self {
        let of = |namespace: &String| names.iter().map(|name| (namespace.clone(), name.clone())).collect();
        Self { keys: namespaces.iter().flat_map(|one| -> Vec<_> { of(one) }).collect(), ..Self::default() }
    }

    fn ranges(namespaces: Option<BTreeSet<String>>) -> Self {
        let namespaces = match namespaces {
            Some(namespaces) => namespaces.into_iter().map(Some).collect(),
            None => [None].into(),
        };
        Self { namespaces, ..Self::default() }
    }

    /// The wanted objects of a state.
    fn of(mut self, objects: Objects) -> impl Iterator<Item = Result<Arc<Object>, SqlError>> + Send {
        let mut range: Option<Range> = None;
        let mut chunk: VecDeque<Arc<Object>> = VecDeque::new();
        std::iter::from_fn(move || {
            while let Some((namespace, name)) = self.keys.pop_front() {
                if let Some(object) = objects.get(&namespace, &name) {
                    return Some(Ok(object));
                }
            }
            while chunk.is_empty() {
                let next = match range.take() {
                    Some(range) => range,
                    None => Range::of(self.namespaces.pop_front()?.as_deref()),
                };
                chunk.extend(objects.range(&next).take(CHUNK).cloned());
                if let Some(last) = chunk.back().filter(|_| chunk.len() == CHUNK) {
                    range = Some(next.after_key(last.key()));
                }
            }
            chunk.pop_front().map(Ok)
        })
    }
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
