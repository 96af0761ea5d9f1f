//! A statement's view of the cluster: who asks, the one revision of all its rows, and the resources that have tables.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use rowplane_sql::{Stop, Watch};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::cache::State;
use crate::http::app::App;
use crate::http::visible::all_namespaces;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::user::User;

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
    pub notes: Notes,
}

/// The notes that a statement makes while it runs.
#[derive(Default)]
pub struct Notes {
    /// The number of objects that were left out.
    pub broken: AtomicU64,
    resources: OnceLock<HashMap<String, Arc<Resource>>>,
    times: Mutex<HashMap<String, Revision>>,
    warnings: Mutex<Vec<String>>,
}

impl Session {
    /// The resources that have tables, by the names of their tables.
    pub fn resources(&self) -> &HashMap<String, Arc<Resource>> {
        self.notes.resources.get_or_init(|| tables_of(&self.served))
    }

    /// Looks at the times that the statement has named, or notes one.
    pub fn times<A>(&self, work: impl FnOnce(&mut HashMap<String, Revision>) -> A) -> A {
        work(&mut lock(&self.notes.times))
    }

    /// The names of all namespaces.
    pub fn all_namespaces(&self) -> BTreeSet<String> {
        all_namespaces(&self.served, &self.state)
    }

    pub fn check_time(&self) -> Result<(), Error> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(timed_out()) }
    }

    pub fn warn(&self, text: String) {
        let mut warnings = lock(&self.notes.warnings);
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = lock(&self.notes.warnings).clone();
        match self.notes.broken.load(Ordering::Relaxed) {
            0 => {}
            broken => warnings.push(format!("objects that cannot be decoded were left out: {broken}")),
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

/// The end of a statement: its deadline, or a client that has gone.
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
