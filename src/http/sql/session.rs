//! A statement's view of the cluster: who asks, the one revision of all its rows, and its tables.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rowplane_sql::{Catalog, Error as SqlError, Function, Stop, Table, Watch};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::objects::ObjectTable;
use super::{past, tables};
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::cache::State;
use crate::http::app::App;
use crate::revision::Revision;
use crate::schema::names::GroupVersion;
use crate::schema::resource::Verb;
use crate::storage::ResourceId;
use crate::user::User;

/// The most times that a statement may name.
const MOST_TIMES: usize = 16;

/// A statement's view of the cluster. It lives as long as the statement does, on the statement's thread.
pub struct Session {
    pub app: Arc<App>,
    pub user: Arc<User>,
    pub served: Arc<Served>,
    /// All rows of the present come from this state.
    pub state: Arc<State>,
    /// The revision of tables that name no time, if the statement asks for a time.
    pub as_of: Option<Revision>,
    /// The only namespaces that are wanted; `None` for all.
    pub namespaces: Option<BTreeSet<String>>,
    pub is_strict: bool,
    /// Whether objects that cannot be decoded are left out, and do not fail the statement.
    pub skips_broken: bool,
    pub runtime: Handle,
    pub deadline: Instant,
    /// The number of objects that were left out.
    pub broken: AtomicU64,
    resources: HashMap<String, Arc<Resource>>,
    opened: Mutex<HashMap<ResourceId, Arc<ObjectTable>>>,
    times: Mutex<HashMap<String, Revision>>,
    warnings: Mutex<Vec<String>>,
}

/// The parts of which [`Session::new`] makes a session.
pub struct Parts {
    pub app: Arc<App>,
    pub user: Arc<User>,
    pub served: Arc<Served>,
    pub state: Arc<State>,
    pub as_of: Option<Revision>,
    pub namespaces: Option<BTreeSet<String>>,
    pub is_strict: bool,
    pub skips_broken: bool,
    pub runtime: Handle,
    pub deadline: Instant,
}

impl Session {
    pub fn new(parts: Parts) -> Self {
        let Parts { app, user, served, state, as_of, namespaces, is_strict, .. } = parts;
        let Parts { skips_broken, runtime, deadline, .. } = parts;
        let resources = tables_of(&served);
        let (opened, times, warnings) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self {
            app,
            user,
            served,
            state,
            as_of,
            namespaces,
            is_strict,
            skips_broken,
            broken: AtomicU64::new(0),
            runtime,
            deadline,
            resources,
            opened,
            times,
            warnings,
        }
    }

    /// The resources that have tables, by the names of their tables.
    pub fn resources(&self) -> &HashMap<String, Arc<Resource>> {
        &self.resources
    }

    /// The table of a resource, with the rows that the user may see.
    pub fn objects(self: &Arc<Self>, resource: &Arc<Resource>) -> Result<Arc<ObjectTable>, SqlError> {
        if let Some(table) = lock(&self.opened).get(&resource.id) {
            return Ok(table.clone());
        }
        let visible = self.runtime.block_on(self.visible(resource, &["list"])).map_err(SqlError::table)?;
        let table = Arc::new(ObjectTable::new(self.clone(), resource.clone(), visible));
        lock(&self.opened).insert(resource.id, table.clone());
        Ok(table)
    }

    /// The revision of a time as the statement spells it. A statement may name a few times only, since each of them makes a
    /// scan.
    pub fn revision_of(&self, time: &str) -> Result<Revision, Error> {
        if let Some(revision) = lock(&self.times).get(time) {
            return Ok(*revision);
        }
        if lock(&self.times).len() >= MOST_TIMES {
            return Err(Error::BadRequest(format!("a statement may name at most {MOST_TIMES} times")));
        }
        let revision = past::wait(self, past::revision(&self.app, time))??;
        lock(&self.times).insert(time.to_owned(), revision);
        Ok(revision)
    }

    /// The names of all namespaces.
    pub fn all_namespaces(&self) -> BTreeSet<String> {
        let namespaces = self.served.get(&GroupVersion::new("", "v1").with_plural("namespaces"));
        let objects = namespaces.map(|resource| self.state.objects(resource.id)).unwrap_or_default();
        let everything = crate::cache::Range::of(None);
        objects.range(&everything).map(|namespace| namespace.name().to_owned()).collect()
    }

    pub fn check_time(&self) -> Result<(), Error> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(timed_out()) }
    }

    pub fn warn(&self, text: String) {
        let mut warnings = lock(&self.warnings);
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = lock(&self.warnings).clone();
        match self.broken.load(Ordering::Relaxed) {
            0 => {}
            broken => warnings.push(format!("{broken} objects that cannot be decoded were left out")),
        }
        warnings
    }
}

/// The error of a statement whose time is over.
pub fn timed_out() -> Error {
    Error::Timeout("the statement took too long".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every stored resource by `plural.group`, or `plural` in the core group; and by its plural, where that of several groups is
/// the one of the core group, then a built-in one, then the one whose group discovery prints first.
fn tables_of(served: &Served) -> HashMap<String, Arc<Resource>> {
    let is_table = |resource: &&Arc<Resource>| {
        let definition = &resource.definition;
        definition.is_discoverable && definition.allows(Verb::List)
    };
    let groups: HashMap<&str, usize> =
        served.registry().groups().iter().enumerate().map(|(at, group)| (&*group.name, at)).collect();
    let rank = |resource: &Resource| {
        let definition = &resource.definition;
        let group = definition.group().as_str();
        (!group.is_empty(), definition.is_custom(), groups.get(group).copied())
    };
    let mut resources: Vec<&Arc<Resource>> = served.stored().filter(is_table).collect();
    resources.sort_by_key(|resource| rank(resource));
    let mut tables = HashMap::new();
    for resource in resources {
        tables.insert(full_name(resource), resource.clone());
        tables.entry(resource.definition.plural.as_str().to_owned()).or_insert_with(|| resource.clone());
    }
    tables
}

/// The name of a table that no other one has.
pub fn full_name(resource: &Resource) -> String {
    let definition = &resource.definition;
    match definition.group().as_str() {
        "" => definition.plural.as_str().to_owned(),
        group => format!("{}.{group}", definition.plural),
    }
}

/// The tables of a session.
pub struct Tables(pub Arc<Session>);

impl Catalog for Tables {
    fn names(&self) -> Vec<String> {
        let own = tables::NAMES.iter().map(|name| (*name).to_owned());
        self.0.resources.keys().cloned().filter(|name| !tables::NAMES.contains(&&**name)).chain(own).collect()
    }

    fn table(&self, name: &str) -> Result<Arc<dyn Table>, SqlError> {
        let Self(session) = self;
        if let Some(table) = tables::open(session, name) {
            return table;
        }
        let Some(resource) = session.resources.get(name) else {
            return Err(SqlError::statement(format!("no such table: {name}")));
        };
        let table = session.objects(resource)?;
        session.warn_of(name, table.visible());
        Ok(table)
    }

    fn views(&self) -> &[(&'static str, &'static str)] {
        tables::VIEWS
    }

    fn functions(&self) -> Vec<Function> {
        tables::functions::all()
    }
}

/// What ends a statement: its deadline, or a client that has gone.
pub struct Limits<T> {
    pub deadline: Instant,
    pub answer: mpsc::Sender<T>,
    pub scanned: AtomicU64,
}

impl<T: Send> Watch for Limits<T> {
    fn stop(&self) -> Option<Stop> {
        if self.answer.is_closed() {
            return Some(Stop::Gone);
        }
        (Instant::now() >= self.deadline).then_some(Stop::Deadline)
    }

    fn scanned(&self, rows: u64) {
        self.scanned.fetch_add(rows, Ordering::Relaxed);
    }
}
