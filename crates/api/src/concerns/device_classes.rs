//! DeviceClasses: they say which devices count as extended resources, so quotas are counted again after a change.

use super::{Committed, Concern, Following};
use crate::Cluster;
use crate::schema::resource::ResourceDefinition;

pub(super) struct DeviceClasses;

impl Concern for DeviceClasses {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"deviceclasses" && definition.group() == "resource.k8s.io"
    }

    fn committed<'a>(&'a self, cluster: &'a Cluster, _: Committed<'a>) -> Option<Following<'a>> {
        Some(Box::pin(async move {
            cluster.recount_devices().await?;
            Ok(None)
        }))
    }
}
