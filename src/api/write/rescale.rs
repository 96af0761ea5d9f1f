//! How a write of a Scale changes its parent.

use crate::api::error::Error;
use crate::api::ownership::{self, Tracking};
use crate::api::subresource::scale;
use crate::api::{ObjectMap, Target, metadata, metadata_mut};
use crate::kinds::behavior::part::Part;
use crate::tree::Value;

/// A decoded Scale whose replicas the parent is to get.
pub(in crate::api) struct Rescale {
    pub scale: ObjectMap,
    pub owners: Owners,
}

/// How the parent's managers are determined.
pub(in crate::api) enum Owners {
    /// The manager of an update becomes the owner of the replicas.
    Update { manager: String },
    /// An apply has computed the managers already.
    Applied(Option<Value>),
}

impl Owners {
    /// The Scale that is found, as plugins see it that may change the wanted one: both have managers for them.
    pub fn shown(
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

    /// The parent with the replicas of the Scale, after checking the Scale's preconditions.
    pub fn parent(
        self,
        target: Target<'_>,
        scale: &ObjectMap,
        current: &ObjectMap,
        now: &str,
    ) -> Result<ObjectMap, Error> {
        let mut parent = current.clone();
        scale::put(target.resource, &mut parent, scale, target.name)?;
        match self {
            Self::Applied(managers) => ownership::put(&mut parent, managers),
            Self::Update { manager } => {
                let (old, new) = (scale::of(target.resource, current)?, scale::of(target.resource, &parent)?);
                let scales = (&old, &new);
                let tracking = Tracking { manager: &manager, part: Part::Scale, now };
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
