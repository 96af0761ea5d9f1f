//! Errors of requests, in terms of the API. `http::status` turns each variant into a `Status`.

mod fixed;

use std::fmt;
use std::sync::Arc;

use crate::auth::authn::Unauthenticated;
use crate::auth::authorizer::{Forbidden, Refusal};
use crate::auth::impersonation::NoName;
use crate::auth::revocation::Revoked;
use crate::causes::{Cause, aggregate};
use crate::codec::object::{Undecodable, Unencodable};
use crate::fields;
use crate::kinds::behavior::rules::Unchecked;
use crate::kinds::behavior::scale::WrongType;
use crate::patch::PatchError;
use crate::schema::names::{GroupKind, GroupResource};
use crate::schema::structural::DefaultsTooLarge;
use crate::storage;
use crate::tree::Map;

/// A failed request. Message texts are part of the wire contract (`docs/spec/list-watch.md`, section 7).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// 400: bad parameters, body or token.
    #[error("{0}")]
    BadRequest(String),
    /// 401.
    #[error("Unauthorized")]
    Unauthorized,
    /// 403; `reason` follows `… is forbidden: `.
    #[error("{} is forbidden: {reason}", resource.named(name))]
    Forbidden { resource: GroupResource, name: String, reason: String },
    /// 403 without a resource; contains the complete message.
    #[error("{0}")]
    ForbiddenPath(String),
    /// 500 of an authorizer that could not decide, or of a path of which nobody knows what to ask it.
    #[error("{0}")]
    NotAuthorized(String),
    /// 404 of an object.
    #[error("{resource} \"{name}\" not found")]
    NotFound { resource: GroupResource, name: String },
    /// 404 of a resource or subresource below a known group version.
    #[error("the server could not find the requested resource")]
    UnknownResource,
    /// 404 of a URL at which a process serves no cluster.
    #[error("no cluster is served at this host and path")]
    NoCluster,
    /// 405 of a verb that the path does not know at all.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// 405 of a verb that this resource does not support.
    #[error("{verb} is not supported on resources of kind \"{resource}\"")]
    NotSupported { resource: GroupResource, verb: &'static str },
    /// 406.
    #[error("{message}")]
    NotAcceptable { message: String, by: Refuser },
    /// 409 on create.
    #[error("{}", already_exists(resource, name, *cause))]
    AlreadyExists { resource: GroupResource, name: String, cause: Exists },
    /// 409; `reason` follows `Operation cannot be fulfilled on … : `.
    #[error("Operation cannot be fulfilled on {subject} \"{name}\": {reason}")]
    Conflict { subject: Subject, name: String, reason: String },
    /// 409 of server-side apply. `message` is complete; the causes name managers and paths.
    #[error("{message}")]
    ApplyConflict { message: String, causes: Vec<Cause> },
    /// The Status of an admission webhook, a policy or a kubelet that refuses the request, with a code of its own.
    #[error("{}", fields::text(status, &["message"]))]
    Denied { status: Box<Map>, code: u16 },
    /// 403 of admission while a namespace is being deleted, with causes.
    #[error("{} is forbidden: {reason}", resource.named(name))]
    ForbiddenBecause { resource: GroupResource, name: String, reason: String, causes: Vec<Cause> },
    /// 410; with `continue_token` a pager can continue, but inconsistently.
    #[error("{message}")]
    Expired { message: String, continue_token: Option<String> },
    /// 413; the limit is in bytes.
    #[error("Request entity too large: limit is {limit}")]
    TooLarge { limit: usize },
    /// 413 of a JSON patch.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {found}"
    )]
    TooManyOperations { limit: usize, found: usize },
    /// 413 of a JSON patch that would take rowplane too long; upstream has no such limit.
    #[error(
        "Request entity too large: The operations of a JSON patch may move at most {limit} elements and members"
    )]
    TooManyMoves { limit: usize },
    /// 413 of a body that would take much more memory than it has bytes; upstream has no such limit.
    #[error("Request entity too large: A body may hold at most {limit} objects and lists")]
    TooBroad { limit: usize },
    /// 413 of an object that would become too large by what its definition adds; upstream's store has such a limit.
    #[error("Request entity too large: {0}")]
    DefaultsTooLarge(#[from] DefaultsTooLarge),
    /// 413 of an object that is too long to be stored, in the words of etcd. Upstream's answer is a 500 without a reason.
    #[error("{}", storage::Error::TooLarge)]
    ObjectTooLarge,
    /// 413 of a statement whose answer, or whose work, is too large.
    #[error("{0}")]
    AnswerTooLarge(String),
    /// 415.
    #[error("{message}")]
    UnsupportedMediaType { message: String, by: Refuser },
    /// 422 with causes.
    #[error("{}", invalid(kind, name, causes))]
    Invalid { kind: GroupKind, name: String, causes: Vec<Cause> },
    /// 422 of a patch that could not be applied. Like upstream's, the message says no more than that.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable,
    /// 429; `retry_after` is in seconds.
    #[error("{message}")]
    TooManyRequests { message: String, retry_after: u32 },
    /// 429 of a request that has waited in vain for the seats of its priority level, after its body had come; `retry_after` is
    /// in seconds.
    #[error("Too many requests, please try again later.")]
    NoSeat { retry_after: u64 },
    /// 429 of an eviction; `retry_after` is in seconds, 0 if it is unknown when to try again.
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    Disruption { cause: Cause, retry_after: u32 },
    /// 500 with reason InternalError.
    #[error("Internal error occurred: {0}")]
    Internal(String),
    /// 500 without a reason.
    #[error("{0}")]
    Unclassified(String),
    /// 500 with reason ServerTimeout: the store is busy; `operation` is the verb.
    #[error(
        "The {operation} operation against {resource} could not be completed at this time, please try again."
    )]
    ServerTimeout { resource: GroupResource, operation: &'static str },
    /// 503; `retry_after` is in seconds.
    #[error("{message}")]
    Unavailable { message: String, retry_after: u32 },
    /// 503 of the database. The text is the database's own, and is only logged; see [`Error::for_clients`].
    #[error("the database is unavailable: {0}")]
    Datastore(Arc<str>),
    /// 504.
    #[error("Timeout: {0}")]
    Timeout(String),
    /// The error in the answer of a request whose write is done, so that it must not be tried again: the status is that of
    /// the cause.
    #[error("{0}")]
    Done(Box<Error>),
    /// 504: a revision that the store has not reached.
    #[error("Timeout: Too large resource version: {requested}, current: {current}")]
    FutureRevision { requested: u64, current: u64 },
}

impl Error {
    /// A 400 with this text.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest(message.into())
    }

    /// The text that clients get.
    pub fn for_clients(&self) -> String {
        match self {
            Self::Datastore(_) => {
                "the datastore does not answer as it should, please try again later".to_owned()
            }
            Self::Done(cause) => cause.for_clients(),
            other => other.to_string(),
        }
    }

    /// The error to answer when a write is done and something that belongs to it fails: a 503 would say that nothing was
    /// written.
    pub fn behind_the_write(self) -> Self {
        match self {
            Self::Datastore(_) | Self::Unavailable { .. } => Self::deadline(),
            other => Self::Done(Box::new(other)),
        }
    }

    /// Whether a write that ended so may have been committed all the same, so that it must not be tried again.
    pub fn leaves_open(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Done(_))
    }

    /// 422 of request options; `kind` is `ListOptions`, `DeleteOptions`, …
    pub fn invalid_options(kind: &str, causes: Vec<Cause>) -> Self {
        Self::Invalid { kind: GroupKind::new("meta.k8s.io", kind), name: String::new(), causes }
    }
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Self {
        match error {
            storage::Error::Compacted { .. } => Self::expired_list(),
            storage::Error::Future { requested, current } => {
                Self::FutureRevision { requested: requested.0, current: current.0 }
            }
            // As a quota that is exceeded.
            storage::Error::Full(_) => Self::ForbiddenPath(error.to_string()),
            storage::Error::Unavailable(detail) | storage::Error::Broken(detail) => Self::Datastore(detail),
            storage::Error::Regressed { .. } | storage::Error::Fenced | storage::Error::Outdated => {
                Self::Unavailable { message: error.to_string(), retry_after: 1 }
            }
            // As with a deadline, the write may still have happened.
            storage::Error::Unknown(_) => Self::deadline(),
            storage::Error::Corrupt(_) => Self::Internal(error.to_string()),
            storage::Error::Removed => Self::UnknownResource,
            storage::Error::TooLarge => Self::ObjectTooLarge,
            storage::Error::Closed => Self::shutting_down(),
        }
    }
}

impl From<Unchecked> for Error {
    fn from(error: Unchecked) -> Self {
        Self::Unavailable { message: error.to_string(), retry_after: 1 }
    }
}

impl From<Unauthenticated> for Error {
    fn from(error: Unauthenticated) -> Self {
        match error {
            Unauthenticated::Refused(_) | Unauthenticated::Missing => Self::Unauthorized,
            Unauthenticated::Starting => Self::starting(),
            Unauthenticated::Unknown(error) => Self::from(error),
        }
    }
}

impl From<Revoked> for Error {
    fn from(revoked: Revoked) -> Self {
        match revoked {
            Revoked::Credential(why) => why.into(),
            Revoked::Right(refusal) => Self::from(*refusal),
        }
    }
}

impl From<NoName> for Error {
    fn from(error: NoName) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<Forbidden> for Error {
    fn from(error: Forbidden) -> Self {
        match error {
            Forbidden::Resource { resource, name, reason } => Self::Forbidden { resource, name, reason },
            Forbidden::Path(message) => Self::ForbiddenPath(message),
        }
    }
}

impl From<Refusal> for Error {
    fn from(error: Refusal) -> Self {
        match error {
            Refusal::Forbidden { forbidden, .. } => forbidden.into(),
            Refusal::Failed(why) => Self::NotAuthorized(why),
        }
    }
}

impl From<WrongType> for Error {
    fn from(error: WrongType) -> Self {
        Self::Unclassified(error.to_string())
    }
}

impl From<Undecodable> for Error {
    fn from(error: Undecodable) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<Unencodable> for Error {
    fn from(error: Unencodable) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(text) => Self::BadRequest(text),
            PatchError::TooManyOperations { limit, found } => Self::TooManyOperations { limit, found },
            PatchError::TooManyMoves { limit } => Self::TooManyMoves { limit },
            PatchError::DoesNotApply(_) | PatchError::TestFailed(_) => Self::Unprocessable,
            PatchError::Failed(text) => Self::Unclassified(text),
        }
    }
}

/// The part of upstream that refuses a media type: its router answers with empty `details`, its handlers without `details`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuser {
    Router,
    Handler,
}

/// Why the name of a new object was not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exists {
    Plain,
    /// The object that holds the name is being deleted.
    Terminating,
    /// No free name was found for `generateName`.
    Generated,
}

/// The subject of a conflict: usually the plural, but the kind if a DELETE precondition fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    Resource(GroupResource),
    Kind(GroupKind),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Resource(resource) => resource.fmt(f),
            Subject::Kind(kind) => kind.fmt(f),
        }
    }
}

fn already_exists(resource: &GroupResource, name: &str, cause: Exists) -> String {
    let plain = format!("{resource} \"{name}\" already exists");
    match cause {
        Exists::Plain => plain,
        Exists::Terminating => format!("object is being deleted: {plain}"),
        Exists::Generated => {
            format!("{plain}, the server was not able to generate a unique name for the object")
        }
    }
}

fn invalid(kind: &GroupKind, name: &str, causes: &[Cause]) -> String {
    let subject = format!("{kind} \"{name}\" is invalid");
    if causes.is_empty() { subject } else { format!("{subject}: {}", aggregate(causes)) }
}
