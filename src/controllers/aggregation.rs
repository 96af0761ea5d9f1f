//! Repairs ClusterRoles that consist of others. A write of a role brings these up to date in its own transaction
//! ([`crate::api::rights::aggregation`]); this loop does what remains: the first start, and what servers of earlier
//! releases write.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::rights::aggregation::{MANAGER, configuration};
use crate::api::{Api, Target, fields};
use crate::auth::rbac::{CLUSTER_ROLES, PolicyRule};
use crate::codec::object::Object;
use crate::gotext;
use crate::kinds::behavior::part::Part;
use crate::schema::resource::Verb;
use crate::storage;
use crate::tree::Value;

/// How often roles are looked at again because one of them has been written. Roles that consist of each other may gain
/// from each other once each.
const ROUNDS: usize = 16;

/// Keeps aggregated roles up to date for ever.
pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&CLUSTER_ROLES).cloned() else { return Ok(()) };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    loop {
        bring_up_to_date(&api).await?;
        watcher.changed().await;
        while match watcher.next().await {
            Err(storage::Error::Compacted { .. }) => return Ok(()),
            events => !events?.is_empty(),
        } {}
    }
}

/// Brings all aggregated roles up to date.
pub async fn bring_up_to_date(api: &Api) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&CLUSTER_ROLES) else { return Ok(()) };
    let mut refused = BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut stale = api.aggregation.stale(&api.cache.any());
        stale.retain(|(name, _)| !refused.contains(name));
        if stale.is_empty() {
            break;
        }
        for (name, rules) in stale {
            let target = Target { resource, namespace: "", name: &name };
            let Some(role) = api.cache.any().get(resource.id, "", &name) else { continue };
            if let Err(error) = apply(api, target, &role, &rules).await {
                tracing::warn!(clusterrole = &*name, %error, "cannot write the rules of an aggregated role");
                refused.insert(name);
            }
        }
    }
    Ok(())
}

/// Makes these the rules of a role that was found, whoever owned them. A role that is gone by now stays gone (409): the
/// configuration has the role's uid, without which an apply would create it.
async fn apply(api: &Api, target: Target<'_>, role: &Object, rules: &[PolicyRule]) -> Result<(), Error> {
    let role = target.resource.decode_closed(role)?;
    let mut configuration = configuration(target.name, rules);
    if let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(uid) = fields::at(&role, &["metadata", "uid"])
    {
        metadata.insert("uid", uid.clone());
    }
    let options = WriteOptions::forced(MANAGER);
    let request = Request::own(Verb::Patch, target).with(&options);
    let body = gotext::json(&Value::Object(configuration));
    api.apply(&request, Part::Main, body.as_bytes()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Answer;
    use crate::api::decode::Body;
    use crate::controllers::garbage::tests::api;
    use crate::tree::json;

    #[tokio::test]
    async fn a_role_that_was_deleted_meanwhile_stays_deleted() {
        let directory = tempfile::tempdir().expect("a directory");
        let api = api(directory.path()).await;
        let resource = api.resources.get(&CLUSTER_ROLES).expect("ClusterRoles");
        let target = Target { resource, namespace: "", name: "whole" };
        let aggregated = json!({"metadata": {"name": "whole"}, "aggregationRule":
            {"clusterRoleSelectors": [{"matchLabels": {"part": "true"}}]}});
        let Value::Object(aggregated) = aggregated else { unreachable!("an object") };
        let create = Request::own(Verb::Create, Target { name: "", ..target });
        let Ok(Answer::Stored(role)) = api.create(&create, Body::Object(&aggregated)).await else {
            panic!("not created")
        };
        apply(&api, target, &role, &[]).await.expect("the role is there");
        api.delete(&Request::own(Verb::Delete, target)).await.map(drop).expect("deleted");
        let refused = apply(&api, target, &role, &[]).await;
        assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
        assert!(api.cache.any().get(resource.id, "", "whole").is_none());
    }
}
