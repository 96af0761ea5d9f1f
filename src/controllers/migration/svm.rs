//! A StorageVersionMigration as its controller sees it: what it asks for, its progress, and the next step.
//!
//! Conditions, reasons and messages are those of upstream's `pkg/controller/storageversionmigrator`.

use jiff::{SignedDuration, Timestamp};

use crate::api::{ObjectMap, meta, metadata};
use crate::fields;
use crate::schema::names::GroupResource;
use crate::tree::{Map, Value, json};

/// How long a resource may take until it is served.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

const RUNS: &str = "The migration is running";

const RUNNING: &str = "Running";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";

/// A migration as its object tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    pub name: String,
    pub resource: GroupResource,
    pub created: Timestamp,
    pub running: bool,
    pub ended: bool,
    pub succeeded: bool,
    /// The checkpoint: rows up to this revision may be stale.
    pub checkpoint: Option<u64>,
}

impl Migration {
    /// `None` for an object that is malformed or being deleted.
    pub fn of(object: &ObjectMap) -> Option<Self> {
        let metadata = metadata(object).filter(|metadata| !meta::is_terminating(metadata))?;
        let resource = object.get("spec")?.get("resource")?;
        let text = |field: &str| resource.get(field).and_then(Value::as_str).unwrap_or_default();
        let checkpoint = object.get("status").and_then(|status| status.get("resourceVersion"));
        Some(Self {
            name: meta::text(metadata, "name").to_owned(),
            resource: GroupResource::new(text("group"), text("resource")),
            created: meta::text(metadata, "creationTimestamp").parse().ok()?,
            running: is_true(object, RUNNING),
            ended: is_true(object, SUCCEEDED) || is_true(object, FAILED),
            succeeded: is_true(object, SUCCEEDED),
            checkpoint: checkpoint.and_then(Value::as_str).and_then(|text| text.parse().ok()),
        })
    }
}

impl Migration {
    /// Whether a resource that is not served yet may still appear.
    pub fn is_young(&self, now: Timestamp) -> bool {
        now.duration_since(self.created) < GRACE
    }
}

/// The next step for the migrations of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// The migration has ended, but its status still says that it runs.
    CleanUp(&'a Migration),
    Work(&'a Migration),
    Promote(&'a Migration),
}

/// Chooses the next step. At most one migration of a resource runs; the oldest is first.
pub fn next(migrations: &[Migration]) -> Option<Next<'_>> {
    let running = || migrations.iter().filter(|migration| migration.running);
    if let Some(ended) = running().find(|migration| migration.ended) {
        return Some(Next::CleanUp(ended));
    }
    if let Some(active) = running().next() {
        return Some(Next::Work(active));
    }
    let waiting = migrations.iter().filter(|migration| !migration.ended);
    waiting.min_by_key(|migration| (migration.created, migration.name.as_str())).map(Next::Promote)
}

/// How many rows there were, and how many are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub all: u64,
    pub left: u64,
}

/// The state of a migration for someone who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// Zero before it has started.
    pub progress: Progress,
    /// The outcome, with the message of a failed migration; `None` while it runs or waits.
    pub end: Option<Result<(), String>>,
}

impl Account {
    /// `None` for an object that is malformed or being deleted.
    pub fn of(object: &ObjectMap) -> Option<Self> {
        let migration = Migration::of(object)?;
        let message = |kind: &str| {
            let found = conditions(object).iter().find(|condition| condition["type"] == kind);
            found.and_then(|condition| condition["message"].as_str()).unwrap_or_default()
        };
        let end = match (is_true(object, FAILED), is_true(object, SUCCEEDED)) {
            (true, _) => Some(Err(message(FAILED).to_owned())),
            (false, true) => Some(Ok(())),
            (false, false) => None,
        };
        Some(Self { name: migration.name, progress: progress_in(message(RUNNING)), end })
    }
}

/// A change of the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Start,
    Checkpoint(u64),
    Report {
        progress: Progress,
        hindrance: Option<String>,
    },
    Succeed(Progress),
    /// With the complete message.
    Fail(String),
    CleanUp,
}

/// Applies a step to an object's status.
pub fn take(object: &mut ObjectMap, step: &Step, now: &str) {
    match step {
        Step::Start => set(object, RUNNING, "True", "MigrationRunning", &running(None, None), now),
        Step::Checkpoint(revision) => {
            let found = status(object).entry("resourceVersion").or_insert_with(|| "".into());
            // A checkpoint that is set does not change.
            if found == "" {
                *found = revision.to_string().into();
            }
        }
        Step::Report { progress, hindrance } => {
            let message = running(Some(*progress), hindrance.as_deref());
            set(object, RUNNING, "True", "MigrationRunning", &message, now);
        }
        Step::Succeed(progress) => {
            let done = Progress { left: 0, ..*progress };
            set(object, RUNNING, "True", "MigrationRunning", &running(Some(done), None), now);
            set(object, SUCCEEDED, "True", "StorageVersionMigrationSucceeded", "Migration completed", now);
        }
        Step::Fail(why) => set(object, FAILED, "True", "StorageVersionMigrationFailed", why, now),
        Step::CleanUp => set(object, RUNNING, "False", "MigrationCompleted", "Migration completed", now),
    }
}

/// The message of a migration that cannot continue, with its progress if there was any.
pub fn failure(progress: Progress, why: &str) -> String {
    let error = format!("migration encountered unhandled error: {why}");
    match progress {
        Progress { all: 0, .. } => error,
        Progress { all, left } => format!("{left}/{all} not yet migrated. {error}"),
    }
}

/// The progress in a message that [`running`] has made.
fn progress_in(message: &str) -> Progress {
    let counts = message.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix(", "));
    let counts = counts.and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let (left, all) = counts.split_once('/').unwrap_or(("0", counts));
    let number = |text: &str| text.parse().unwrap_or_default();
    Progress { all: number(all), left: number(left) }
}

fn running(progress: Option<Progress>, hindrance: Option<&str>) -> String {
    let mut message = RUNS.to_owned();
    match progress {
        None | Some(Progress { all: 0, .. }) => {}
        Some(Progress { all, left: 0 }) => message.push_str(&format!(", {all} objects verified migrated")),
        Some(Progress { all, left }) => message.push_str(&format!(", {left}/{all} objects not yet migrated")),
    }
    if let Some(hindrance) = hindrance {
        message.push_str(&format!("; transient error: {hindrance}"));
    }
    message
}

fn status(object: &mut ObjectMap) -> &mut Map {
    let status = object.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    match status {
        Value::Object(status) => status,
        _ => unreachable!("made an object above"),
    }
}

fn conditions(object: &ObjectMap) -> &[Value] {
    fields::items(object, &["status", "conditions"])
}

fn is_true(object: &ObjectMap, kind: &str) -> bool {
    conditions(object).iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn set(object: &mut ObjectMap, kind: &str, to: &str, reason: &str, message: &str, now: &str) {
    let mut all = conditions(object).to_vec();
    let at = all.iter().position(|condition| condition["type"] == kind);
    let same = at.map(|at| &all[at]).filter(|condition| condition["status"] == to);
    let since = same.map_or(now.into(), |condition| condition["lastTransitionTime"].clone());
    let condition = json!({
        "type": kind, "status": to, "lastTransitionTime": since, "reason": reason, "message": message
    });
    match at {
        Some(at) => all[at] = condition,
        None => all.push(condition),
    }
    status(object).insert("conditions", all.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(name: &str, second: i64, running: bool, ended: bool) -> Migration {
        Migration {
            name: name.to_owned(),
            resource: GroupResource::new("", "pods"),
            created: Timestamp::from_second(second).expect("a time"),
            running,
            ended,
            succeeded: ended,
            checkpoint: None,
        }
    }

    #[test]
    fn storage_version_41_one_at_a_time_and_the_oldest_first() {
        let name = |migrations: &[Migration]| match next(migrations) {
            Some(Next::CleanUp(m)) => format!("clean {}", m.name),
            Some(Next::Work(m)) => format!("work {}", m.name),
            Some(Next::Promote(m)) => format!("promote {}", m.name),
            None => String::new(),
        };
        let (young, old) = (migration("young", 2, false, false), migration("old", 1, false, false));
        let twin = migration("ancestor", 1, false, false);
        assert_eq!(name(&[]), "");
        assert_eq!(name(&[young.clone(), old.clone()]), "promote old");
        assert_eq!(name(&[old.clone(), twin]), "promote ancestor");
        assert_eq!(name(&[old.clone(), migration("active", 3, true, false)]), "work active");
        let ended = migration("ended", 4, true, true);
        assert_eq!(name(&[old.clone(), migration("active", 3, true, false), ended]), "clean ended");
        assert_eq!(name(&[migration("done", 0, false, true), young]), "promote young");
    }

    #[test]
    fn storage_version_48_an_unknown_resource_has_a_minute() {
        let migration = migration("a", 100, true, false);
        let young = |second| migration.is_young(Timestamp::from_second(second).expect("a time"));
        assert!(young(100) && young(159) && !young(160) && !young(10_000));
    }

    fn told(object: &ObjectMap) -> Vec<(String, String, String, String)> {
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let all = conditions(object).iter();
        all.map(|c| (text(c, "type"), text(c, "status"), text(c, "message"), text(c, "lastTransitionTime")))
            .collect()
    }

    #[test]
    fn what_is_told_is_read() {
        let mut object = ObjectMap::new();
        object.insert("metadata", json!({"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z"}));
        object.insert("spec", json!({"resource": {"resource": "pods"}}));
        let account = |object: &ObjectMap| {
            let Account { progress, end, .. } = Account::of(object).expect("a migration");
            (progress.all, progress.left, end)
        };
        assert_eq!(account(&object), (0, 0, None));
        take(&mut object, &Step::Start, "t0");
        assert_eq!(account(&object), (0, 0, None));
        let progress = Progress { all: 50, left: 20 };
        for hindrance in [None, Some("busy 3/4".to_owned())] {
            take(&mut object, &Step::Report { progress, hindrance }, "t1");
            assert_eq!(account(&object), (50, 20, None));
        }
        let mut failed = object.clone();
        take(&mut failed, &Step::Fail("no".to_owned()), "t2");
        assert_eq!(account(&failed), (50, 20, Some(Err("no".to_owned()))));
        take(&mut object, &Step::Succeed(progress), "t2");
        assert_eq!(account(&object), (50, 0, Some(Ok(()))));
    }

    #[test]
    fn conditions_and_messages() {
        let mut object = ObjectMap::new();
        let condition = |kind: &str, status: &str, message: &str, since: &str| {
            (kind.to_owned(), status.to_owned(), message.to_owned(), since.to_owned())
        };
        take(&mut object, &Step::Start, "t0");
        assert_eq!(told(&object), [condition("Running", "True", "The migration is running", "t0")]);
        let progress = Progress { all: 5, left: 2 };
        let hindrance = Some("busy".to_owned());
        take(&mut object, &Step::Report { progress, hindrance }, "t1");
        let message = "The migration is running, 2/5 objects not yet migrated; transient error: busy";
        assert_eq!(told(&object), [condition("Running", "True", message, "t0")]);
        take(&mut object, &Step::Checkpoint(7), "t2");
        take(&mut object, &Step::Succeed(progress), "t3");
        let message = "The migration is running, 5 objects verified migrated";
        let succeeded = condition("Succeeded", "True", "Migration completed", "t3");
        assert_eq!(told(&object), [condition("Running", "True", message, "t0"), succeeded.clone()]);
        take(&mut object, &Step::CleanUp, "t4");
        assert_eq!(told(&object), [condition("Running", "False", "Migration completed", "t4"), succeeded]);
        assert_eq!(object["status"]["resourceVersion"], "7");
        let none = "migration encountered unhandled error: no";
        assert_eq!(failure(Progress::default(), "no"), none);
        assert_eq!(failure(progress, "no"), format!("2/5 not yet migrated. {none}"));
    }
}
