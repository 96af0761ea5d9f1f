//! DELETE of an object whose stored value cannot be read, with the option
//! `ignoreStoreReadErrorWithClusterBreakingPotential` (`registry/generic/registry/corrupt_obj_deleter.go`).
//!
//! Nobody knows the object's finalizers and dependents, and its value may be readable again once a key is back. So it is
//! deleted only by whoever asks for just that and has a right of its own for it. Plugins of admission are not asked, as
//! upstream asks none.

use crate::auth::authorizer::Decision;
use crate::concerns::{self, Committed, ObjectChange};
use crate::effects::Effects;
use crate::encryption::stored_key;
use crate::error::{Error, Subject};
use crate::gotext::quote;
use crate::options::DryRun;
use crate::request::Request;
use crate::schema::resource::Origin;
use crate::storage::{Change, Expect, Mutation, Written};
use crate::verbs::delete::Deleted;
use crate::write::Write;
use crate::{Api, Target};

/// The verb that authorizers are asked about.
const VERB: &str = "unsafe-delete-ignore-read-errors";
/// The annotation of audit events of such requests.
const ANNOTATION: &str = "apiserver.k8s.io/unsafe-delete-ignore-read-error";

impl Api {
    /// Deletes an object provided that it cannot be read at its newest version.
    pub(super) async fn delete_unreadable(&self, write: Write<'_>) -> Result<Deleted, Error> {
        let (request, target) = (write.request, write.request.target);
        if let Some(record) = request.audit {
            record.annotate(ANNOTATION, "");
        }
        authorize(request).await?;
        let state = self.cache.fresh().await?;
        let found = state.get(target.resource.id, target.namespace, target.name);
        let found = found.ok_or_else(|| target.not_found())?;
        if found.to_closed_map().is_ok() {
            return Err(readable(target));
        }
        if request.options.dry_run() == DryRun::Yes {
            return Ok(Deleted::Unread);
        }
        let (stored, part) = (Some(&*found), write.part);
        let change = ObjectChange { cluster: self, target, part, old: None, stored, quotas: None };
        let effects = concerns::remove(&change, Effects::default())?;
        let mutation = Mutation::new(target.key(), Expect::At(found.revision()), Change::Delete);
        let audit = request.audit.and_then(|record| record.to_commit(target.name, 200));
        let (joined, mutation) =
            effects.onto(Mutation { audit, author: self.author(request, ""), ..mutation });
        match self.store.write_joined(joined, mutation).await? {
            Written::Committed { .. } => {
                request.committed();
                if let Some(record) = request.audit {
                    record.committed(200);
                }
                let written = Committed { target, part, old: Some(&*found), new: None };
                concerns::committed(self, written).await?;
                Ok(Deleted::Unread)
            }
            Written::Conflict { .. } | Written::Unmet { .. } => {
                Err(Error::modified(target.resource.group_resource(), target.name))
            }
        }
    }
}

/// 403 unless the user has the right to delete what cannot be read.
async fn authorize(request: &Request<'_>) -> Result<(), Error> {
    if !request.subresource.is_empty() {
        let option = "ignoreStoreReadErrorWithClusterBreakingPotential";
        let why = format!("{option} delete option is not allowed on a subresource or non-resource request");
        return Err(request.target.forbidden(why));
    }
    request.confirm().await?;
    let attributes = request.attributes(VERB);
    let reason = match request.authorizer.decide(&attributes).decided().await {
        Decision::Allow(_) => return Ok(()),
        Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
    };
    Err(request.target.forbidden(match reason.error() {
        Some(error) => format!("error while checking permission for {}, {error}", quote(VERB)),
        None => format!("not permitted to do {}, reason: {}", quote(VERB), reason.text(&attributes)),
    }))
}

/// 409 of an object that can be read.
fn readable(target: Target<'_>) -> Error {
    let definition = &target.resource.definition;
    let resource = definition.group_resource();
    let key = stored_key(&resource, definition.origin == Origin::BuiltIn, target.namespace, target.name);
    let why = "unsafe deletion is not allowed because the object is decodable from storage";
    let reason = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    );
    Error::Conflict { subject: Subject::Resource(resource), name: target.name.to_owned(), reason }
}
