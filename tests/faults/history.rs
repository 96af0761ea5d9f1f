//! What clients did and were told, in their own view; the checkers evaluate it afterwards.

use std::fmt;

use super::log::Log;

/// Namespace and name.
pub type Key = (String, String);

/// The content of a version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub uid: String,
    pub revision: u64,
    pub token: Token,
}

/// The content of one write and of no other, as a text that can be found in any encoding: `T7.42;red;`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(String);

impl Token {
    pub fn new(client: usize, number: usize, colour: &str) -> Self {
        Self(format!("T{client}.{number};{colour};"))
    }

    /// The first token in these bytes.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'T').find_map(|(start, _)| {
            let rest = &bytes[start..bytes.len().min(start + 64)];
            let end = rest.iter().enumerate().filter(|(_, byte)| **byte == b';').nth(1)?.0;
            let text = std::str::from_utf8(&rest[..=end]).ok()?;
            let numbers = text[1..].split(';').next()?;
            let digits = numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            (digits && numbers.contains('.')).then(|| Self(text.to_owned()))
        })
    }

    /// The label of an object with this content.
    pub fn colour(&self) -> &str {
        self.0.split(';').nth(1).unwrap_or_default()
    }

    /// A number that no other token has.
    pub fn number(&self) -> usize {
        let number = self.0.split(['.', ';']).nth(1).and_then(|number| number.parse().ok());
        number.unwrap_or_default()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Up to two database pages of text; half of it would be as wrong as none.
    pub fn padding(&self) -> String {
        let length = self.0.bytes().fold(0, |sum, byte| (sum * 31 + usize::from(byte)) % 9_001);
        "0123456789".chars().cycle().skip(length % 10).take(length).collect()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Nanoseconds since the start of the run.
pub type Time = u64;

/// A request about one object.
#[derive(Clone, Debug)]
pub struct Call {
    pub key: Key,
    pub action: Action,
    pub answer: Answer,
    pub called: Time,
    pub returned: Time,
}

#[derive(Clone, Debug)]
pub enum Action {
    Create {
        token: Token,
    },
    /// Updates the version that the client has read, or whatever exists.
    Update {
        token: Token,
        at: Option<Version>,
    },
    /// Patches the version that the client has read, or whatever exists.
    Patch {
        token: Token,
        at: Option<Version>,
        form: PatchForm,
    },
    /// Applies with force, which creates a missing object.
    Apply {
        token: Token,
    },
    /// Updates the object's `status`.
    Status {
        token: Token,
        at: Option<Version>,
    },
    /// Updates its `scale` to this many replicas. The token stays.
    Scale {
        replicas: usize,
        at: Option<Version>,
    },
    Delete {
        at: Option<Version>,
    },
    Read,
    /// Not a request: a failover has reverted the object to this version.
    Restore {
        to: Option<Version>,
    },
}

/// How a patch is written. A JSON patch of a version tests it; the others name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchForm {
    Json,
    Merge,
    Strategic,
}

impl Action {
    /// The content that the action writes.
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Create { token }
            | Self::Update { token, .. }
            | Self::Patch { token, .. }
            | Self::Apply { token }
            | Self::Status { token, .. } => Some(token),
            Self::Scale { .. } | Self::Delete { .. } | Self::Read | Self::Restore { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The write succeeded. The answer to a deletion contains no revision.
    Written {
        revision: Option<u64>,
    },
    Found(Version),
    /// 404
    Missing,
    /// 409 of a create.
    Exists,
    /// 409 of a precondition, or 422 of a test.
    Conflict,
    /// An error that says that nothing was written, whatever the state is.
    Refused,
    /// No answer, or an error that does not tell. A write may still take effect at any time.
    Unknown,
}

/// The freshness that a list requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// No resourceVersion: at least as new as everything that was answered before.
    Latest,
    AtLeast(u64),
    Exactly(u64),
    Any,
}

/// A list, from one answer or from pages.
#[derive(Clone, Debug)]
pub struct Listing {
    pub freshness: Freshness,
    pub filter: Filter,
    pub called: Time,
    /// When the first page arrived.
    pub returned: Time,
    pub revision: u64,
    /// The revision of every page.
    pub page_revisions: Vec<u64>,
    /// In the order of arrival.
    pub items: Vec<(Key, Version)>,
}

/// The kinds of the load's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    ConfigMap,
    Deployment,
    Pod,
    /// A custom resource.
    Widget,
}

impl Kind {
    pub const BUILT_IN: [Self; 3] = [Self::ConfigMap, Self::Deployment, Self::Pod];
    pub const ALL: [Self; 4] = [Self::ConfigMap, Self::Deployment, Self::Pod, Self::Widget];

    /// The prefix of the names of such objects.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::ConfigMap => "c",
            Self::Deployment => "d",
            Self::Pod => "p",
            Self::Widget => "w",
        }
    }

    /// The kind of the object with this key.
    pub fn of(key: &Key) -> Self {
        let found = Self::ALL.into_iter().skip(1).find(|kind| key.1.starts_with(kind.prefix()));
        found.unwrap_or_default()
    }
}

/// Which objects a list or watch selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub colour: Option<String>,
    /// By a field selector.
    pub not_named: Option<String>,
}

impl Filter {
    /// Whether it selects all objects of its kind.
    pub fn is_whole(&self) -> bool {
        *self == Self { kind: self.kind, ..Self::default() }
    }

    pub fn holds(&self, key: &Key, version: &Version) -> bool {
        self.kind == Kind::of(key)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.0)
            && self.colour.as_ref().is_none_or(|colour| colour == version.token.colour())
            && self.not_named.as_ref().is_none_or(|name| *name != key.1)
    }
}

/// Everything that one watcher was told, in all of its streams.
#[derive(Clone, Debug)]
pub struct WatchRun {
    pub filter: Filter,
    pub streams: Vec<Stream>,
}

/// One watch request.
#[derive(Clone, Debug)]
pub struct Stream {
    pub start: Start,
    pub told: Vec<Told>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Changes after a revision.
    After(u64),
    /// `sendInitialEvents`: a state first, up to its bookmark.
    State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Event {
        kind: EventKind,
        key: Key,
        object: Version,
    },
    Bookmark {
        revision: u64,
        end_of_state: bool,
    },
    /// 410: the stream ends, and the watcher starts over.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// Everything of a run.
pub struct History {
    /// What happened, according to the database.
    pub log: Log,
    pub calls: Vec<Call>,
    pub listings: Vec<Listing>,
    pub watches: Vec<WatchRun>,
    /// Whether stored objects may have been written again without a change.
    pub migrated: bool,
}

/// Something that is impossible if all promises are kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    pub story: String,
}

impl Violation {
    pub fn new(promise: Promise, story: impl Into<String>) -> Self {
        Self { promise, story: story.into() }
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.story)
    }
}

/// The promises. The nine about watches are those of etcd's robustness suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Requests about one object behave as if made one at a time, each between its call and its answer.
    Linearizable,
    /// Revisions have no gaps and are not used twice, and their order agrees with real time.
    Clock,
    /// An answered write is in the log, a refused one is not, and each change has a cause.
    Durable,
    /// A list is the complete state at its revision, in order and as fresh as requested.
    Snapshot,
    Ordered,
    Unique,
    /// An event is exactly one change.
    Atomic,
    Reliable,
    Resumable,
    Bookmarkable,
    Filtered,
    /// ADDED is an object that the watcher did not have, MODIFIED one that it had.
    CreatedOrModified,
    /// DELETED carries the state before, with the revision of the deletion.
    PreviousState,
    /// After the faults, every server works again without a restart.
    Recovered,
    /// What guards writes judges every write that is committed after it.
    Guarded,
}
