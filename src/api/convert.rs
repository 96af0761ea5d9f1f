//! Objects in another version of their kind. Only two built-in kinds look different in two served versions; custom
//! resources will be converted elsewhere.
//!
//! Nothing is lost either way: what a version has no field for travels in annotations, as upstream's does.

mod autoscaler;
mod event;
mod metrics;

use super::ObjectMap;
use crate::schema::names::{GroupVersion, Gvk};

/// A way from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    to: String,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    EventToCore,
    EventFromCore,
    AutoscalerToV1,
    AutoscalerToV2,
}

/// The way for objects of a kind into the version `to`; `None` where there is none to go, be it that the versions are equal.
pub fn conversion(from: &Gvk, to: &str) -> Option<Conversion> {
    let step = match (from.kind.as_str(), from.api_version().as_str(), to) {
        ("Event", "v1", "events.k8s.io/v1") => Step::EventFromCore,
        ("Event", "events.k8s.io/v1", "v1") => Step::EventToCore,
        ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1") => Step::AutoscalerToV1,
        ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2") => Step::AutoscalerToV2,
        _ => return None,
    };
    Some(Conversion { to: to.to_owned(), step })
}

/// The other version in which objects of a kind look different; `None` for kinds that have one look.
pub fn other_version(kind: &Gvk) -> Option<GroupVersion> {
    Some(GroupVersion::fixed(match (kind.kind.as_str(), kind.api_version().as_str()) {
        ("Event", "v1") => "events.k8s.io/v1",
        ("Event", "events.k8s.io/v1") => "v1",
        ("HorizontalPodAutoscaler", "autoscaling/v2") => "autoscaling/v1",
        ("HorizontalPodAutoscaler", "autoscaling/v1") => "autoscaling/v2",
        _ => return None,
    }))
}

impl Conversion {
    /// The object in the other version, `apiVersion` included.
    pub fn convert(&self, object: ObjectMap) -> ObjectMap {
        let mut converted = match self.step {
            Step::EventToCore => event::to_core(object),
            Step::EventFromCore => event::from_core(object),
            Step::AutoscalerToV1 => autoscaler::to_v1(object),
            Step::AutoscalerToV2 => autoscaler::to_v2(object),
        };
        converted.insert("apiVersion", self.to.as_str().into());
        converted
    }
}

#[cfg(test)]
mod tests;
