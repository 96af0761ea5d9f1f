//! POST: a new object.

use uuid::Uuid;

use super::error::{Error, Exists};
use super::meta::owners::{Found, drop_repeated};
use super::meta::{self, create::Stamp};
use super::modify::{put_mutation, unstored};
use super::options::DryRun;
use super::options::write::WriteOptions;
use super::resource::Resource;
use super::strictness::Requester;
use super::{Answer, Api, ObjectMap, Target, admission, metadata_mut, now, ownership};
use crate::kinds::behavior::strategy::Writer;
use crate::storage::{Expect, Requirement, Written};
use crate::warnings::Warnings;

/// Attempts to find a free name for `generateName` (apiserver's `maxNameGenerationCreateAttempts`).
const NAME_ATTEMPTS: usize = 8;

impl Api {
    /// Creates `object`, which is [closed](crate::codec::managed), and which the caller has checked to be of this
    /// resource's kind and version.
    /// An empty `namespace` means the cluster scope.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        mut object: ObjectMap,
        options: &WriteOptions,
        Requester { user, warnings }: Requester<'_>,
    ) -> Result<Answer, Error> {
        resource.default(&mut object);
        let in_path = resource.definition.namespaced().then_some(namespace);
        meta::ensure_namespace(metadata_mut(&mut object), in_path)?;
        meta::create::wipe(metadata_mut(&mut object));
        drop_repeated(metadata_mut(&mut object), Found::InBody, warnings);
        let prefix = meta::text(metadata_mut(&mut object), "generateName").to_owned();
        let version = meta::text(metadata_mut(&mut object), "resourceVersion").to_owned();
        ownership::track_create(resource, &mut object, options.manager());
        let generate = meta::create::wants_generated_name(metadata_mut(&mut object));
        for attempt in 1.. {
            // Only an attempt that may be followed by another needs a copy.
            let body = if generate { object.clone() } else { std::mem::take(&mut object) };
            let now = now();
            let generated = match generate {
                true => Some((self.config.generate_name)(&prefix)),
                false => {
                    super::metadata(&body).and_then(|metadata| resource.behavior.strategy.own_name(metadata))
                }
            };
            let mut candidate = stamped(body, generated, &now);
            let name =
                meta::text(super::metadata(&candidate).unwrap_or(&ObjectMap::new()), "name").to_owned();
            let target = Target { resource, namespace, name: &name };
            let namespace = admission::namespace::admit_create(self, target).await?;
            admission::plugins::complete_proven(self, target, &mut candidate).await?;
            complete(resource, &mut candidate, &Writer { user, now: &now, warnings });
            judge(resource, &candidate, &name)?;
            admission::plugins::check_proven(self, target, &candidate).await?;
            let allocation = self.allocate(target, &mut candidate, None, options.dry_run).await?;
            resource.behavior.warnings.create(&candidate, warnings);
            if options.dry_run == DryRun::Yes {
                return self.try_create(target, candidate, version).await;
            }
            meta::create::refuse_version(&version)?;
            let written = self.put_new(target, candidate, namespace).await;
            self.settle(target, allocation, &written).await;
            match written? {
                Written::Committed { object: Some(object), .. } => return Ok(Answer::Stored(object)),
                Written::Committed { object: None, .. } => break,
                Written::Conflict { .. } if generate && attempt < NAME_ATTEMPTS => {}
                Written::Conflict { judged_at, .. } | Written::Unmet { judged_at, .. } => {
                    self.cache.at_least(judged_at).await?;
                    return Err(self.already_exists(target, !prefix.is_empty()));
                }
            }
        }
        Err(Error::Internal("a write came back without its object".to_owned()))
    }

    async fn put_new(
        &self,
        target: Target<'_>,
        object: ObjectMap,
        namespace: Option<Requirement>,
    ) -> Result<Written, Error> {
        let mutation = put_mutation(target, Expect::Absent, object)?.requiring(namespace);
        admission::namespace::write_admitted(self, target, mutation).await
    }

    /// A dry run: everything but the write.
    async fn try_create(
        &self,
        target: Target<'_>,
        mut object: ObjectMap,
        version: String,
    ) -> Result<Answer, Error> {
        let state = self.cache.fresh().await?;
        if state.get(target.resource.id, target.namespace, target.name).is_some() {
            return Err(self.already_exists(target, false));
        }
        // Nobody takes away what was sent.
        if !version.is_empty() {
            metadata_mut(&mut object).insert("resourceVersion", version.into());
        }
        Ok(unstored(object))
    }

    fn already_exists(&self, target: Target<'_>, generated: bool) -> Error {
        let state = self.cache.any();
        let found = state.get(target.resource.id, target.namespace, target.name);
        let terminating = found
            .filter(|object| object.mentions("deletionTimestamp"))
            .and_then(|object| object.to_map().ok())
            .is_some_and(|object| super::metadata(&object).is_some_and(meta::is_terminating));
        let cause = match (terminating, generated) {
            (true, _) => Exists::Terminating,
            (false, true) => Exists::Generated,
            (false, false) => Exists::Plain,
        };
        Error::AlreadyExists {
            resource: target.resource.group_resource(),
            name: target.name.to_owned(),
            cause,
        }
    }
}

/// The object as it would be stored: stamped, and with what plugins and the kind add.
pub(super) fn prepared(
    api: &Api,
    target: Target<'_>,
    object: ObjectMap,
    Requester { user, warnings }: Requester<'_>,
) -> Result<ObjectMap, Error> {
    let now = now();
    let mut object = stamped(object, None, &now);
    admission::plugins::complete(api, target, &mut object)?;
    complete(target.resource, &mut object, &Writer { user, now: &now, warnings });
    Ok(object)
}

/// The object with a uid, and with a name if one was generated.
fn stamped(mut object: ObjectMap, generated: Option<String>, now: &str) -> ObjectMap {
    let uid = Uuid::new_v4().to_string();
    let metadata = metadata_mut(&mut object);
    meta::create::prepare(metadata, &Stamp { uid: &uid, now });
    if let Some(name) = generated {
        metadata.insert("name", name.into());
    }
    meta::drop_empty(metadata);
    object
}

fn complete(resource: &Resource, object: &mut ObjectMap, writer: &Writer<'_>) {
    resource.behavior.strategy.hooks.begin_create(object);
    resource.behavior.strategy.prepare_create(object, writer);
}

/// As [`judge`], asks the plugins that only look, and tells what the kind has to say.
pub(super) fn validate(
    api: &Api,
    target: Target<'_>,
    object: &ObjectMap,
    warnings: &Warnings,
) -> Result<(), Error> {
    judge(target.resource, object, target.name)?;
    admission::plugins::check(api, target, object)?;
    target.resource.behavior.warnings.create(object, warnings);
    Ok(())
}

/// 422 for what the rules do not allow.
fn judge(resource: &Resource, object: &ObjectMap, name: &str) -> Result<(), Error> {
    let empty = ObjectMap::new();
    let metadata = super::metadata(object).unwrap_or(&empty);
    let scope = resource.definition.scope;
    let mut causes = meta::create::validate(metadata, scope, resource.behavior.strategy.names);
    causes.append(resource.behavior.rules.create(object)?);
    if causes.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid { kind: resource.group_kind(), name: name.to_owned(), causes: causes.into_vec() })
}
