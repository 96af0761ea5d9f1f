//! The history of an object: its versions, who made them, and what each has changed.

use super::changed::{changed_paths, json_patch};
use super::{not_kept, time};
use crate::error::Error;
use crate::fields;
use crate::resource::Resource;
use crate::revision::Revision;
use crate::storage::{ChangeKind, ChangeOfPast, Key, Precision, Version, Writer};
use crate::tree::{Value, json};
use crate::verbs::list::object;
use crate::{Api, ObjectMap, Target, gotext};

/// The versions of an object that are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// Only versions before this revision.
    pub before: Option<Revision>,
    /// Only versions after this revision.
    pub after: Revision,
    pub limit: u32,
    pub include: Include,
}

/// The parts of an entry of a history that are shown only on request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Include {
    pub object: bool,
    /// A JSON patch from the version before.
    pub patch: bool,
}

/// A change of an object.
pub struct Changed {
    /// The revision, the time, the event, and who made it.
    pub entry: Value,
    /// `None` for a deletion.
    pub object: Option<ObjectMap>,
    /// `None` for a creation.
    pub previous: Option<ObjectMap>,
}

/// Entries, newest first, and the revision before which older ones follow.
pub struct Page {
    pub entries: Vec<Value>,
    pub rest: Option<Revision>,
}

impl Api {
    /// A part of the history of an object.
    pub async fn history(&self, target: Target<'_>, wanted: Versions) -> Result<Page, Error> {
        let resource = target.resource;
        let key = Key::new(resource.id, target.namespace, target.name);
        // One more, which tells what the oldest one has changed.
        let versions = self.cache.backend().versions_of(&key, wanted.before, wanted.limit + 1).await;
        let versions = versions.map_err(|error| not_kept(resource, error))?;
        let objects = self.objects(resource, &versions).await?;
        let pairs = versions.iter().zip(&objects);
        let older = pairs.clone().skip(1).map(Some).chain([None]);
        let mut entries = Vec::new();
        for ((version, now), older) in pairs.zip(older).take(wanted.limit as usize) {
            if version.revision <= wanted.after {
                return Ok(Page { entries, rest: None });
            }
            let before = older.and_then(|(_, before)| before.as_ref());
            entries.push(self.entry(resource, version, now.as_ref(), before, wanted.include).await?);
        }
        let is_cut = versions.len() > wanted.limit as usize;
        let rest = versions.get(entries.len().saturating_sub(1)).filter(|_| is_cut);
        Ok(Page { rest: rest.map(|last| last.revision), entries })
    }

    /// The entry of one change; `None` if the version has been swept meanwhile.
    pub async fn entry_of_change(
        &self,
        resource: &Resource,
        change: &ChangeOfPast,
        include: Include,
    ) -> Result<Option<Value>, Error> {
        let key = Key::new(resource.id, &change.namespace, &change.name);
        let before = Revision(change.revision.0 + 1);
        let versions = self.cache.backend().versions_of(&key, Some(before), 2).await;
        let versions = versions.map_err(|error| not_kept(resource, error))?;
        let objects = self.objects(resource, &versions).await?;
        let Some(version) = versions.first().filter(|version| version.revision == change.revision) else {
            return Ok(None);
        };
        let (now, before) =
            (objects.first().and_then(Option::as_ref), objects.get(1).and_then(Option::as_ref));
        self.entry(resource, version, now, before, include).await.map(Some)
    }

    /// The change as streams tell it; its objects only with their values, which are read one by one.
    pub async fn changed(
        &self,
        resource: &Resource,
        change: &ChangeOfPast,
        with_values: bool,
    ) -> Result<Changed, Error> {
        let mut entry = json!({"revision": change.revision.to_string()});
        if let Some(ms) = change.committed_ms {
            entry["time"] = time(ms).into();
        }
        entry["event"] = event_type(change.event).into();
        entry["uid"] = (*change.uid).into();
        write_writer(&mut entry, change.writer.as_ref());
        if !with_values {
            return Ok(Changed { entry, object: None, previous: None });
        }
        let key = Key::new(resource.id, &change.namespace, &change.name);
        let versions = self.cache.backend().versions_of(&key, Some(Revision(change.revision.0 + 1)), 2).await;
        let versions = versions.map_err(|error| not_kept(resource, error))?;
        let is_kept = versions.first().is_some_and(|version| version.revision == change.revision);
        if !is_kept || (change.event != ChangeKind::Added && versions.len() < 2) {
            let resource = resource.group_resource();
            let message = format!("history of {resource} before revision {} is not kept", change.revision);
            return Err(Error::Expired { message, continue_token: None });
        }
        let mut objects = self.objects(resource, &versions).await?.into_iter();
        let object = objects.next().flatten();
        // What was there before an object of the same name is another object.
        let previous = objects.next().flatten().filter(|_| change.event != ChangeKind::Added);
        if let (Some(now), Some(before)) = (&object, &previous) {
            let version = resource.definition.api_version();
            let paths = resource.schema(version.as_str()).map(|schema| changed_paths(schema, before, now));
            entry["changed"] = json!(paths.unwrap_or_default());
        }
        Ok(Changed { entry, object, previous })
    }

    /// The objects of versions as they are served; `None` for deletions.
    async fn objects(
        &self,
        resource: &Resource,
        versions: &[Version],
    ) -> Result<Vec<Option<ObjectMap>>, Error> {
        let live = versions.iter().filter(|version| !version.deleted);
        let stored = live.map(|version| object(version.row.clone())).collect();
        let mut converted = self.converter.objects(resource, stored).await?.into_iter();
        let decoded = versions.iter().map(|version| match version.deleted {
            true => Ok(None),
            false => converted.next().map(|object| resource.decode(&object)).transpose(),
        });
        decoded.collect()
    }

    async fn entry(
        &self,
        resource: &Resource,
        version: &Version,
        now: Option<&ObjectMap>,
        before: Option<&ObjectMap>,
        include: Include,
    ) -> Result<Value, Error> {
        let mut entry = json!({"revision": version.revision.to_string()});
        let (committed_ms, precision) = self.committed(version).await?;
        if let Some(ms) = committed_ms {
            entry["time"] = time(ms).into();
        }
        if let Some(precision) = precision {
            entry["precision"] = precision.into();
        }
        let event = match version.event {
            Some(event) => event_type(event),
            None if version.deleted => "DELETED",
            None if version.previous.is_none() && before.is_none() => "ADDED",
            None => "MODIFIED",
        };
        entry["event"] = event.into();
        entry["uid"] = (*version.uid).into();
        write_writer(&mut entry, version.writer.as_ref());
        if let Some(generation) = now.and_then(|now| fields::at(now, &["metadata", "generation"])) {
            entry["generation"] = generation.clone();
        }
        if let Some(previous) = version.previous {
            entry["previous"] = previous.to_string().into();
        }
        if let (Some(now), Some(before)) = (now, before.filter(|_| event == "MODIFIED")) {
            let version = resource.definition.api_version();
            let changed = resource.schema(version.as_str()).map(|schema| changed_paths(schema, before, now));
            entry["changed"] = json!(changed.unwrap_or_default());
            if include.patch {
                entry["patch"] = json_patch(before, now);
            }
        }
        if let Some(now) = now.filter(|_| include.object) {
            entry["object"] = Value::Object(now.clone());
        }
        Ok(entry)
    }

    /// When a version was committed, and how exactly that is known if it is not exact.
    async fn committed(&self, version: &Version) -> Result<(Option<i64>, Option<String>), Error> {
        if let Some(ms) = version.committed_ms {
            return Ok((Some(ms), None));
        }
        let found = self.cache.backend().moment_of(version.revision).await;
        let (moment, precision) = found.map_err(super::no_moment)?;
        Ok(match precision {
            Precision::Exact => (Some(moment.committed_ms), None),
            Precision::Within { ms } => {
                let within = std::time::Duration::from_millis(ms.unsigned_abs());
                (Some(moment.committed_ms), Some(gotext::duration(within)))
            }
            Precision::Before => (Some(moment.committed_ms), Some("before".to_owned())),
        })
    }
}

fn event_type(event: ChangeKind) -> &'static str {
    match event {
        ChangeKind::Added => "ADDED",
        ChangeKind::Modified => "MODIFIED",
        ChangeKind::Deleted => "DELETED",
    }
}

fn write_writer(entry: &mut Value, writer: Option<&Writer>) {
    let Some(writer) = writer else { return };
    let Writer { username, impersonator, verb, subresource, manager, client } = writer;
    let parts = [
        ("user", username),
        ("impersonator", impersonator),
        ("manager", manager),
        ("verb", verb),
        ("subresource", subresource),
        ("client", client),
    ];
    for (name, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        entry[name] = text.as_str().into();
    }
}
