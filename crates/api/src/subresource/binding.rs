//! `pods/binding` and `bindings`: the scheduler assigns a pod to a node.

use crate::causes::{Cause, aggregate};
use crate::decode::{Encoded, sent_kind, typed_object};
use crate::error::{Error, Subject};
use crate::gotext;
use crate::kinds::core::pod::condition;
use crate::kinds::core::pod_spec::gated_fields::OLD_ANNOTATIONS;
use crate::request::Request;
use crate::resource::Resource;
use crate::schema::names::{GroupResource, Gvr};
use crate::tree::Value;
use crate::write::{Current, Next, Proposal, Write};
use crate::{Api, ObjectMap, Target, fields, metadata_mut};

impl Api {
    /// Binds a pod, which must not be bound yet. The binding's uid and resourceVersion are preconditions. If the URL
    /// names no pod, the binding does.
    pub async fn bind(&self, request: &Request<'_>, body: &Encoded) -> Result<(), Error> {
        let binding = typed_object(sent_kind(request)?, body, request.strictness())?;
        let name = fields::text(&binding, &["metadata", "name"]).to_owned();
        let name = if request.target.name.is_empty() { &name } else { request.target.name };
        let request = &Request { target: Target { name, ..request.target }, ..*request };
        let pod = Target { resource: self.pods_of(request)?, ..request.target };
        let mut action = self.complete_action(request, binding).await?;
        let binding = action.object_mut()?;
        if fields::text(binding, &["metadata", "name"]) != pod.name {
            return Err(Error::bad_request("name in URL does not match name in Binding object"));
        }
        check_node(binding)?;
        self.admission.validate(&mut action).await?;
        action.settle_requirements();
        let binding = action.take_object()?;
        let (relies_on, configured) = (&*action.requires, action.configured.as_ref());
        let request = &Request { target: pod, subresource: "binding", ..*request };
        let write = Write { relies_on, configured, ..Write::part_of_action(request) };
        let now = self.now();
        let propose = &mut |found: Option<&Current>| {
            let current = found.ok_or_else(|| pod.not_found())?;
            Ok(Proposal::Decided(Next::Put(bound(pod, &binding, current, &now)?)))
        };
        self.modify(write, propose).await.map(drop)
    }

    /// The resource of the pod that is bound, which the path names unless it is that of `bindings`.
    fn pods_of<'a>(&'a self, request: &Request<'a>) -> Result<&'a Resource, Error> {
        if !request.subresource.is_empty() {
            return Ok(request.target.resource);
        }
        let pods = self.resources.get(&Gvr::fixed("v1", "pods"));
        pods.map(|pods| &**pods).ok_or(Error::UnknownResource)
    }
}

/// Checks the target. Upstream's registry answers 500 with the bare text of the error.
fn check_node(binding: &ObjectMap) -> Result<(), Error> {
    let mut causes = Vec::new();
    let kind = fields::text(binding, &["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        causes.push(Cause::not_supported("target.kind", gotext::quote(kind), &["Node", "<empty>"]));
    }
    if fields::text(binding, &["target", "name"]).is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    if causes.is_empty() { Ok(()) } else { Err(Error::Unclassified(aggregate(&causes))) }
}

fn bound(target: Target<'_>, binding: &ObjectMap, current: &Current, now: &str) -> Result<ObjectMap, Error> {
    let pod = &current.object;
    check_preconditions(target, binding, pod)?;
    let name = target.name;
    let taken = fields::text(pod, &["spec", "nodeName"]);
    let refused = if fields::at(pod, &["metadata", "deletionTimestamp"]).is_some_and(Value::is_string) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !taken.is_empty() {
        format!("pod {name} is already assigned to node {}", gotext::quote(taken))
    } else if !fields::items(pod, &["spec", "schedulingGates"]).is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(assigned(pod.clone(), binding, now));
    };
    let subject = Subject::Resource(GroupResource::new("", "pods/binding"));
    Err(Error::Conflict { subject, name: name.to_owned(), reason: refused })
}

fn check_preconditions(target: Target<'_>, binding: &ObjectMap, pod: &ObjectMap) -> Result<(), Error> {
    for (field, label) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wanted = fields::text(binding, &["metadata", field]);
        let found = fields::text(pod, &["metadata", field]);
        if !wanted.is_empty() && wanted != found {
            let reason = format!(
                "Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {found}"
            );
            let subject = Subject::Resource(target.resource.group_resource());
            return Err(Error::Conflict { subject, name: target.name.to_owned(), reason });
        }
    }
    Ok(())
}

/// The pod on its node, with the binding's labels and annotations added.
fn assigned(mut pod: ObjectMap, binding: &ObjectMap, now: &str) -> ObjectMap {
    let node = fields::text(binding, &["target", "name"]);
    fields::object_mut(&mut pod, "spec").insert("nodeName", node.into());
    for field in ["annotations", "labels"] {
        let added = fields::at(binding, &["metadata", field]).and_then(Value::as_object);
        if let Some(added) = added.filter(|added| !added.is_empty()) {
            let added = added.iter().filter(|(name, _)| !OLD_ANNOTATIONS.contains(&name.as_str()));
            let added = added.map(|(name, value)| (name.clone(), value.clone()));
            fields::object_mut(metadata_mut(&mut pod), field).extend(added);
        }
    }
    let status = fields::object_mut(&mut pod, "status");
    status.shift_remove("nominatedNodeName");
    condition::set(status, &condition::Condition::plain("PodScheduled"), now);
    pod
}
