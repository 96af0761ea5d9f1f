//! Custom objects that only a webhook can convert. It is called before one is decoded, and before one is stored.
//!
//! Everything behind this step finds objects in the version that it asks for. A resource without a webhook passes it by
//! one look at the resource, and an object that has the version already by a look at its `apiVersion`. Results are kept, so
//! that the watches and lists of many clients call the webhook once for a change ([`Kept`]).
//!
//! Deletions and the metadata that controllers write need no webhook: they change an object in the version it is stored
//! in ([`Reads::AsStored`](crate::write::Reads)).
//!
//! Few requests need a call, and every request is one future with room for what it may await: calls are futures of their
//! own, in boxes, so that the future of a request that needs none is small.

mod kept;
pub(crate) mod managers;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use self::kept::{Id, Kept, Turn};
use crate::cache::event::{Event, EventType};
use crate::codec::at_rest::StorageMediaType;
use crate::codec::managed;
use crate::codec::object::{Draft, Mark, Object};
use crate::error::Error;
use crate::kinds::custom::CustomVersion;
use crate::resource::Resource;
use crate::resource::custom::Custom;
use crate::resource::hook::{Caller, Failed, Hook};
use crate::resource::versions::conform;
use crate::runtime::Runtime;
use crate::service_routes::ServiceRoutes;
use crate::tree::Value;
use crate::{Answer, ObjectMap};

/// The most objects that a list's reader holds in two versions.
const CHUNK: usize = 256;

/// Converts objects by the webhooks of their definitions.
pub struct Converter {
    caller: Caller,
    kept: Kept,
}

/// The items of a list, in chunks.
pub type Items = BoxStream<'static, Result<Vec<Arc<Object>>, Error>>;

impl Converter {
    pub fn new(routes: Arc<ServiceRoutes>, runtime: Runtime) -> Self {
        Self { caller: Caller { routes, runtime }, kept: Kept::default() }
    }

    /// A stored object in the version that a resource is served in.
    pub async fn object(&self, resource: &Resource, object: Arc<Object>) -> Result<Arc<Object>, Error> {
        match resource.hooked() {
            None => Ok(object),
            Some((custom, _)) if !custom.needs_hook(&object) => Ok(object),
            Some(_) => {
                let mut converted = Box::pin(self.objects(resource, vec![object])).await?;
                converted.pop().ok_or_else(|| Error::Internal("a conversion lost its object".to_owned()))
            }
        }
    }

    /// The variant of [`Converter::object`] for several objects at a time.
    pub async fn objects(
        &self,
        resource: &Resource,
        mut objects: Vec<Arc<Object>>,
    ) -> Result<Vec<Arc<Object>>, Error> {
        let Some((custom, hook)) = resource.hooked() else { return Ok(objects) };
        let number = custom.served_version().number;
        let places: Vec<usize> =
            (0..objects.len()).filter(|place| custom.needs_hook(&objects[*place])).collect();
        let wanted: Vec<(Id, Arc<Object>)> = places
            .iter()
            .map(|place| {
                (Id { revision: objects[*place].revision(), version: number }, objects[*place].clone())
            })
            .collect();
        let mut found: Vec<Option<Arc<Object>>> = vec![None; wanted.len()];
        loop {
            match self.kept.turn(&wanted, &mut found) {
                Turn::Done => break,
                Turn::Wait(failure) => failure.wait().await?,
                Turn::Work(work) => {
                    let batch: Vec<Arc<Object>> =
                        work.places().iter().map(|place| wanted[*place].1.clone()).collect();
                    match Box::pin(self.convert_stored(custom, hook, &batch)).await {
                        Ok(converted) => work.finish(converted, &mut found),
                        Err(failed) => return Err(work.fail(failed)),
                    }
                }
            }
        }
        for (place, converted) in places.into_iter().zip(found) {
            if let Some(converted) = converted {
                objects[place] = converted;
            }
        }
        Ok(objects)
    }

    /// One call for stored objects of one version.
    async fn convert_stored(
        &self,
        custom: &Custom,
        hook: &Hook,
        objects: &[Arc<Object>],
    ) -> Result<Vec<Arc<Object>>, Failed> {
        let to = custom.served_version();
        let read = |object: &Arc<Object>| custom.as_stored(object.to_map()?);
        let maps: Vec<ObjectMap> = objects.iter().map(read).collect::<Result<_, Error>>()?;
        let converted = self.call(custom, hook, to, &maps).await?;
        let encoded = objects.iter().zip(converted).map(|(object, converted)| {
            let draft = Draft::encode(object.namespace(), object.name(), converted, StorageMediaType::Json);
            Arc::new(draft.settled(Mark::settled(to.number)).into_object(object.revision()))
        });
        Ok(encoded.collect())
    }

    /// Open objects of one version in another one, as that version's schema has them.
    async fn call(
        &self,
        custom: &Custom,
        hook: &Hook,
        to: &CustomVersion,
        objects: &[ObjectMap],
    ) -> Result<Vec<ObjectMap>, Failed> {
        let from = objects.first().map(api_version).unwrap_or_default();
        let from = custom.known_version(from)?;
        let version = to.kind.gvk.group_version.clone();
        let mut converted = hook.convert(&self.caller, &from.kind.gvk, version, objects).await?;
        for object in &mut converted {
            conform(to, object)?;
        }
        Ok(converted)
    }

    /// An object of one version of a resource in another one, as its type or schema has it.
    pub async fn between(
        &self,
        from: &Resource,
        to: &Resource,
        object: ObjectMap,
    ) -> Result<ObjectMap, Error> {
        match to.hooked() {
            Some((custom, hook)) => self.written(custom, hook, custom.served_version(), object).await,
            None => to.of_stored(from.to_stored(object)?, || "the object".to_owned()),
        }
    }

    /// A written object in the version that its resource is stored in.
    pub async fn to_stored(&self, resource: &Resource, object: ObjectMap) -> Result<ObjectMap, Error> {
        let Some((custom, hook)) = resource.hooked() else { return Ok(object) };
        let to = custom.version.definition.stored();
        self.written(custom, hook, to, object).await
    }

    /// The answer of a dry run: the object as it would be when it was stored and read again.
    pub async fn as_if_stored(&self, resource: &Resource, object: ObjectMap) -> Result<ObjectMap, Error> {
        let Some((custom, hook)) = resource.hooked() else { return Ok(object) };
        let stored = self.written(custom, hook, custom.version.definition.stored(), object).await?;
        self.written(custom, hook, custom.served_version(), stored).await
    }

    async fn written(
        &self,
        custom: &Custom,
        hook: &Hook,
        to: &CustomVersion,
        mut object: ObjectMap,
    ) -> Result<ObjectMap, Error> {
        if api_version(&object) == to.kind.gvk.api_version().as_str() {
            return Ok(object);
        }
        managed::open(&mut object);
        let mut converted = Box::pin(self.call(custom, hook, to, &[object])).await?;
        converted.pop().ok_or_else(|| Error::Internal("a conversion lost its object".to_owned()))
    }

    /// An answer in the version that a resource is served in.
    pub async fn answer(&self, resource: &Resource, answer: Answer) -> Result<Answer, Error> {
        let Some((custom, hook)) = resource.hooked() else { return Ok(answer) };
        Ok(match answer {
            Answer::Stored(object) => Answer::Stored(self.object(resource, object).await?),
            Answer::Unstored(object) => {
                Answer::Unstored(self.written(custom, hook, custom.served_version(), object).await?)
            }
        })
    }

    /// Events whose objects have the version that a resource is served in.
    pub async fn events(
        &self,
        resource: &Resource,
        events: Vec<Arc<Event>>,
    ) -> Result<Vec<Arc<Event>>, Error> {
        let both = events.iter().flat_map(|event| [event.previous.clone(), event.current.clone()]);
        let objects = self.objects(resource, both.flatten().collect()).await?;
        let mut objects = objects.into_iter();
        let mut same = |object: &Option<Arc<Object>>| object.as_ref().and_then(|_| objects.next());
        let converted = events.iter().map(|event| {
            let (previous, current) = (same(&event.previous), same(&event.current));
            Arc::new(Event::new(event.revision, current, previous))
        });
        Ok(converted.collect())
    }

    /// The variant of [`Converter::events`] where it is known which object of an event is shown: the other one is left
    /// out.
    pub async fn shown(
        &self,
        resource: &Resource,
        events: Vec<(Arc<Event>, EventType)>,
    ) -> Result<Vec<(Arc<Event>, EventType)>, Error> {
        let of = |event: &Event, kind| match kind {
            EventType::Deleted => event.previous.clone(),
            EventType::Added | EventType::Modified => event.current.clone(),
        };
        let objects = events.iter().filter_map(|(event, kind)| of(event, *kind)).collect();
        let mut objects = self.objects(resource, objects).await?.into_iter();
        let converted = events.into_iter().map(|(event, kind)| {
            let object = of(&event, kind).and_then(|_| objects.next());
            let (current, previous) = match kind {
                EventType::Deleted => (None, object),
                EventType::Added | EventType::Modified => (object, None),
            };
            (Arc::new(Event::new(event.revision, current, previous)), kind)
        });
        Ok(converted.collect())
    }

    /// A list whose items have the version that its resource is served in; a call for every few of them. Rows of a query
    /// come one by one, and are joined.
    pub fn items(self: &Arc<Self>, resource: &Arc<Resource>, items: Items) -> Items {
        if resource.hooked().is_none() {
            return items;
        }
        let (converter, resource) = (self.clone(), resource.clone());
        let single = items.flat_map(|chunk| {
            let single: Vec<Result<Arc<Object>, Error>> = match chunk {
                Ok(objects) => objects.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(single)
        });
        single
            .chunks(CHUNK)
            .then(move |chunk| {
                let (converter, resource) = (converter.clone(), resource.clone());
                async move {
                    let objects = chunk.into_iter().collect::<Result<Vec<_>, _>>()?;
                    converter.objects(&resource, objects).await
                }
            })
            .boxed()
    }
}

fn api_version(object: &ObjectMap) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}
