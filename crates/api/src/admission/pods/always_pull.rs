//! AlwaysPullImages: whoever runs an image has shown a registry that he may.

use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::causes::Cause;
use crate::error::Error;
use crate::gotext::quote;
use crate::request::Request;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub(in crate::admission) struct AlwaysPullImages;

impl Admission for AlwaysPullImages {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && of_kind(request, "", "Pod")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        if runs_nothing_new(attempt) {
            return Verdict::Now(Ok(()));
        }
        Verdict::Now(attempt.object_mut().map(set))
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match &attempt.object {
            Some(pod) if !runs_nothing_new(attempt) => Verdict::Now(check(attempt, pod)),
            _ => Verdict::Now(Ok(())),
        }
    }
}

/// Whether this is an update that brings no other image.
fn runs_nothing_new(attempt: &Attempt<'_>) -> bool {
    let images = |pod: &ObjectMap| -> Vec<Value> {
        let containers = LISTS.iter().flat_map(|list| fields::items(pod, &["spec", list]));
        containers.map(|container| container["image"].clone()).collect()
    };
    let (Some(old), Some(new)) = (attempt.old, &attempt.object) else { return false };
    let known = images(old);
    images(new).iter().all(|image| known.contains(image))
}

fn set(pod: &mut ObjectMap) {
    let spec = fields::object_mut(pod, "spec");
    for list in LISTS {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            container.insert("imagePullPolicy", "Always".into());
        }
    }
    let Some(Value::Array(volumes)) = spec.get_mut("volumes") else { return };
    for volume in volumes.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(Value::Object(image)) = volume.get_mut("image") {
            image.insert("pullPolicy", "Always".into());
        }
    }
}

/// Upstream answers several refusals with 500, since their aggregate is no API status.
fn check(attempt: &Attempt<'_>, pod: &ObjectMap) -> Result<(), Error> {
    let mut wrong = Vec::new();
    let mut see = |path: String, policy: &Value| {
        if policy != "Always" {
            let policy = quote(policy.as_str().unwrap_or_default());
            let cause = Cause::not_supported(path, policy, &["Always"]);
            wrong.push(attempt.refused(format!("{}: {}", cause.field, cause.message)));
        }
    };
    for list in LISTS {
        for (index, container) in fields::items(pod, &["spec", list]).iter().enumerate() {
            see(format!("spec.{list}[{index}].imagePullPolicy"), &container["imagePullPolicy"]);
        }
    }
    for (index, volume) in fields::items(pod, &["spec", "volumes"]).iter().enumerate() {
        if volume["image"].is_object() {
            see(format!("spec.volumes[{index}].image.pullPolicy"), &volume["image"]["pullPolicy"]);
        }
    }
    match wrong.len() {
        0 => Ok(()),
        1 => Err(wrong.remove(0)),
        _ => {
            let texts: Vec<String> = wrong.iter().map(Error::to_string).collect();
            Err(Error::Unclassified(format!("[{}]", texts.join(", "))))
        }
    }
}
