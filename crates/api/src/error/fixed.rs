//! Failures with a text that upstream fixes.

use super::{Error, Subject};
use crate::causes::Cause;
use crate::gotext;
use crate::revision::Revision;
use crate::schema::names::{GroupKind, GroupResource};

/// The text behind `Operation cannot be fulfilled on …: ` in the conflict of two writes.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";
const PAGE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter";
const PAGE_RESUMABLE: &str = ", or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

impl Error {
    /// 410 of a list at an exact revision whose history is gone.
    pub fn expired_list() -> Self {
        let message = "The resourceVersion for the provided list is too old.".to_owned();
        Self::Expired { message, continue_token: None }
    }

    /// 410 of a page whose history is gone. With `token`, the client continues after the same key on the newest data.
    pub fn expired_page(token: Option<String>) -> Self {
        let end = if token.is_some() { PAGE_RESUMABLE } else { "." };
        Self::Expired { message: format!("{PAGE_EXPIRED}{end}"), continue_token: token }
    }

    /// 410 of a watch that starts before `oldest`. It is sent as an event, never as the HTTP status.
    pub fn expired_watch(from: Revision, oldest: Revision) -> Self {
        let message = format!("too old resource version: {from} ({oldest})");
        Self::Expired { message, continue_token: None }
    }

    pub fn not_found(resource: GroupResource, name: impl Into<String>) -> Self {
        Self::NotFound { resource, name: name.into() }
    }

    /// 409 of a write that expected another revision.
    pub fn modified(resource: GroupResource, name: impl Into<String>) -> Self {
        Self::Conflict {
            subject: Subject::Resource(resource),
            name: name.into(),
            reason: MODIFIED.to_owned(),
        }
    }

    /// 409 of a DELETE whose uid precondition does not hold.
    pub fn uid_precondition(kind: GroupKind, name: impl Into<String>, wanted: &str, found: &str) -> Self {
        let reason = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
        );
        Self::Conflict { subject: Subject::Kind(kind), name: name.into(), reason }
    }

    /// 409 of a DELETE whose resourceVersion precondition does not hold.
    pub fn revision_precondition(
        kind: GroupKind,
        name: impl Into<String>,
        wanted: &str,
        found: &str,
    ) -> Self {
        let reason = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
        );
        Self::Conflict { subject: Subject::Kind(kind), name: name.into(), reason }
    }

    /// An event without the object that it must have.
    pub fn event_without_object() -> Self {
        Self::Internal("an event without its object".to_owned())
    }

    /// 409 of an apply that names a uid while there is no object.
    pub fn uid_without_object(resource: GroupResource, name: impl Into<String>, uid: &str) -> Self {
        let reason = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        Self::Conflict { subject: Subject::Resource(resource), name: name.into(), reason }
    }

    /// 422 of an update without a revision, for kinds that demand one. It names the plural instead of the kind.
    pub fn revision_required(resource: &GroupResource, name: impl Into<String>) -> Self {
        let causes = vec![Cause::invalid("metadata.resourceVersion", 0, "must be specified for an update")];
        let kind = GroupKind { group: resource.group.clone(), kind: resource.plural.clone() };
        Self::Invalid { kind, name: name.into(), causes }
    }

    /// 422 of a patch whose result cannot be decoded; `result` is its JSON text, `why` the decoder's error.
    pub fn undecodable_patch(result: &str, why: &str) -> Self {
        let causes = vec![Cause::invalid("patch", gotext::quote(result), why)];
        Self::Invalid { kind: GroupKind::new("", ""), name: String::new(), causes }
    }

    /// 504 after a write took too long, in the words of upstream's filter of timeouts. The write may still happen.
    pub fn deadline() -> Self {
        let text = "request did not complete within the allotted timeout";
        Self::Timeout(text.to_owned())
    }

    /// 503 of a write before this server has registered how it encodes the resource.
    pub fn not_registered(resource: &GroupResource, last_error: Option<&str>) -> Self {
        let last_error = last_error.unwrap_or("<nil>");
        let message = format!(
            "wait for storage version registration to complete for resource: {resource}, last seen error: {last_error}"
        );
        Self::Unavailable { message, retry_after: 0 }
    }

    /// 503 while the server starts, in upstream's words. Upstream names five seconds; a start here takes less.
    pub fn starting() -> Self {
        let message =
            "the request has been made before all known HTTP paths have been installed, please try again";
        Self::Unavailable { message: message.to_owned(), retry_after: 1 }
    }

    /// 429 because of a limit that upstream does not have.
    pub fn too_many(what: &str) -> Self {
        Self::TooManyRequests { message: format!("too many {what}, please try again later"), retry_after: 1 }
    }

    /// 503 while the server shuts down.
    pub fn shutting_down() -> Self {
        Self::Unavailable { message: "apiserver is shutting down".to_owned(), retry_after: 1 }
    }
}
