//! Which kind follows which rules.

use super::apps::{daemon_set, deployment, replica_set, revision, stateful_set};
use super::batch::{cron_job, job};
use super::errors::Errors;
use super::{OfChange, OfNew, Rules, claim, pod};
use crate::api::ObjectMap;
use crate::schema::resource::ResourceDefinition;

fn any(_: &ObjectMap, _: &mut Errors) {}

fn any_change(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

/// Rules of kinds whose status has none, or that have no status.
const fn plain(create: OfNew, update: OfChange) -> Rules {
    Rules { create, update, status: any_change }
}

const fn with_status(create: OfNew, update: OfChange, status: OfChange) -> Rules {
    Rules { create, update, status }
}

pub(super) fn rules(definition: &ResourceDefinition) -> Rules {
    match (&*definition.group, &*definition.kind) {
        ("", kind) => core(kind),
        ("apps", kind) => apps(kind),
        ("batch", "Job") => with_status(job::create, job::update, job::status),
        ("batch", "CronJob") => plain(cron_job::create, cron_job::update),
        _ => plain(any, any_change),
    }
}

fn core(kind: &str) -> Rules {
    match kind {
        "Pod" => with_status(pod::create, pod::update, pod::status),
        "ReplicationController" => {
            with_status(replica_set::create_controller, replica_set::update_controller, replica_set::status)
        }
        "PersistentVolumeClaim" => with_status(claim::create, claim::update, claim::status),
        _ => plain(any, any_change),
    }
}

fn apps(kind: &str) -> Rules {
    match kind {
        "Deployment" => with_status(deployment::create, deployment::update, deployment::status),
        "ReplicaSet" => with_status(replica_set::create, replica_set::update, replica_set::status),
        "StatefulSet" => with_status(stateful_set::create, stateful_set::update, stateful_set::status),
        "DaemonSet" => with_status(daemon_set::create, daemon_set::update, daemon_set::status),
        "ControllerRevision" => plain(revision::create, revision::update),
        _ => plain(any, any_change),
    }
}
