//! How a write of a Scale changes its parent.

use super::Current;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::ownership::{self, Tracking};
use crate::request::Request;
use crate::scale;
use crate::tree::Value;
use crate::{ObjectMap, Target, metadata, metadata_mut};

/// A decoded Scale whose replicas the parent is to get.
pub(crate) struct Rescale {
    pub scale: ObjectMap,
    pub owners: Owners,
}

/// How the parent's managers are determined.
pub(crate) enum Owners {
    /// The manager of an update becomes the owner of the replicas.
    Update { manager: String },
    /// An apply has computed the managers already.
    Applied(Option<Value>),
}

/// A Scale that is written, beside the one that was found.
pub(super) struct Scaled {
    owners: Owners,
    /// The Scale that was found, as plugins see it that may change the wanted one.
    pub shown: ObjectMap,
    /// The Scale that was found, as the other plugins see it.
    pub before: ObjectMap,
}

impl Scaled {
    pub fn new(
        request: &Request<'_>,
        owners: Owners,
        parent: &Current,
        wanted: &mut ObjectMap,
        now: &str,
    ) -> Result<Self, Error> {
        let before = scale::of(request.target.resource, &parent.object)?;
        let shown = owners.shown(request.target, (&parent.object, &before), wanted, now);
        Ok(Self { owners, shown, before })
    }

    /// The parent with the replicas of the Scale, after checking the Scale's preconditions.
    pub fn parent(
        &self,
        target: Target<'_>,
        scale: &ObjectMap,
        current: &ObjectMap,
        now: &str,
    ) -> Result<ObjectMap, Error> {
        self.owners.parent(target, scale, current, now)
    }
}

impl Owners {
    /// The Scale that is found, as plugins see it that may change the wanted one: both have managers for them.
    fn shown(
        &self,
        target: Target<'_>,
        (parent, found): (&ObjectMap, &ObjectMap),
        wanted: &mut ObjectMap,
        now: &str,
    ) -> ObjectMap {
        let mut found = found.clone();
        let before = metadata(parent).and_then(|own| own.get("managedFields"));
        let (after, tracking) = match self {
            Self::Applied(managers) => (managers.as_ref(), None),
            Self::Update { manager } => (before, Some(Tracking { manager, part: Part::Scale, now })),
        };
        ownership::scale::show(target.resource, (&mut found, wanted), (before, after), tracking);
        found
    }

    fn parent(
        &self,
        target: Target<'_>,
        scale: &ObjectMap,
        current: &ObjectMap,
        now: &str,
    ) -> Result<ObjectMap, Error> {
        let mut parent = current.clone();
        scale::put(target.resource, &mut parent, scale, target.name)?;
        match self {
            Self::Applied(managers) => ownership::put(&mut parent, managers.clone()),
            Self::Update { manager } => {
                let (old, new) = (scale::of(target.resource, current)?, scale::of(target.resource, &parent)?);
                let scales = (&old, &new);
                let tracking = Tracking { manager, part: Part::Scale, now };
                ownership::scale::track(target.resource, &mut parent, scales, tracking);
            }
        }
        for field in ["resourceVersion", "uid"] {
            match metadata(scale).and_then(|metadata| metadata.get(field)).cloned() {
                Some(wanted) => metadata_mut(&mut parent).insert(field, wanted),
                // A Scale without a precondition changes the custom resource that was found.
                None if target.resource.behavior.scale.is_some() => continue,
                None => metadata_mut(&mut parent).shift_remove(field),
            };
        }
        Ok(parent)
    }
}
