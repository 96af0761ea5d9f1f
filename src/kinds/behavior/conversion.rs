//! Objects in another version of their kind. Only two built-in kinds look different in two served versions; custom
//! resources will be converted elsewhere.
//!
//! Nothing is lost either way: what a version has no field for travels in annotations, as upstream's does.

use crate::fields::ObjectMap;
use crate::kinds::autoscaling::conversion as autoscaling_conversion;
use crate::kinds::events::conversion as events_conversion;

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

/// The way for objects of `kind`; `None` where there is none to go, be it that the versions are equal.
pub fn conversion(from_api_version: &str, to_api_version: &str, kind: &str) -> Option<Conversion> {
    let step = match (kind, from_api_version, to_api_version) {
        ("Event", "v1", "events.k8s.io/v1") => Step::EventFromCore,
        ("Event", "events.k8s.io/v1", "v1") => Step::EventToCore,
        ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1") => Step::AutoscalerToV1,
        ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2") => Step::AutoscalerToV2,
        _ => return None,
    };
    Some(Conversion { to: to_api_version.to_owned(), step })
}

/// The other version in which objects of `kind` look different; `None` for kinds that have one look.
pub fn other_version(api_version: &str, kind: &str) -> Option<&'static str> {
    match (kind, api_version) {
        ("Event", "v1") => Some("events.k8s.io/v1"),
        ("Event", "events.k8s.io/v1") => Some("v1"),
        ("HorizontalPodAutoscaler", "autoscaling/v2") => Some("autoscaling/v1"),
        ("HorizontalPodAutoscaler", "autoscaling/v1") => Some("autoscaling/v2"),
        _ => None,
    }
}

impl Conversion {
    /// The object in the other version, `apiVersion` included.
    pub fn convert(&self, object: ObjectMap) -> ObjectMap {
        let mut converted = match self.step {
            Step::EventToCore => events_conversion::to_core(object),
            Step::EventFromCore => events_conversion::from_core(object),
            Step::AutoscalerToV1 => autoscaling_conversion::to_v1(object),
            Step::AutoscalerToV2 => autoscaling_conversion::to_v2(object),
        };
        converted.insert("apiVersion", self.to.as_str().into());
        converted
    }
}

#[cfg(test)]
mod tests;
