//! Fields of features that v1.37 leaves off (kubernetes.io's table of feature gates): nobody sets them, but who has them
//! keeps them (upstream's `DropDisabledFields` and its like).
//!
//! A tree of names describes the gated fields of a kind, so that an object is walked once, and only where one may stand.

use crate::fields::ObjectMap;
use crate::tree::Value;

/// A node of the tree of a kind's gated fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Below a member.
    Under(&'static str, &'static [Node]),
    /// In each element of a list, or each value of a map.
    Each(&'static [Node]),
    /// A member that is the feature's.
    Of(Feature, &'static str),
    /// The same within a holder, which goes too if it holds nothing else.
    OnlyOf(Feature, &'static str, &'static str),
}

/// Named as upstream's gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    AtomicWriteVolumeUserFields,
    ContainerStopSignals,
    /// `CoordinatedLeaderElection`, field by field.
    ElectionStrategy,
    PreferredHolder,
    CsiVolumeHealth,
    DraDerivedAttributes,
    DraDeviceCompatibilityGroups,
    DraListTypeAttributes,
    DraNodeAllocatableResources,
    DraOptionalNodeOperations,
    DraPartitionableDevicesType,
    EmptyDirVolumeMode,
    EvictionRequestApi,
    GenericWorkload,
    GrpcContainerProbeTls,
    H2cContainerProbe,
    ImageVolumeWithDigest,
    InPlacePodVerticalScalingSchedulerPreemption,
    /// No gate, but annotations of a release that is gone.
    OldInitContainers,
    VolumeBindMountOptions,
    WorkloadWithJob,
}

/// Features, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Features(u32);

impl Features {
    fn add(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u32;
    }

    fn contains(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }
}

/// Takes out of `new` what it has of features that `old` does not use.
pub fn drop_unused(nodes: &[Node], new: &mut ObjectMap, old: Option<&ObjectMap>) {
    if used(nodes, new) == Features::default() {
        return;
    }
    let kept = old.map(|old| used(nodes, old)).unwrap_or_default();
    remove(nodes, new, kept);
}

fn used(nodes: &[Node], object: &ObjectMap) -> Features {
    let mut found = Features::default();
    look(nodes, object, &mut found);
    found
}

fn look(nodes: &[Node], object: &ObjectMap, found: &mut Features) {
    for node in nodes {
        match node {
            Node::Of(feature, name) if object.get(name).is_some_and(|value| !value.is_null()) => {
                found.add(*feature);
            }
            Node::OnlyOf(feature, holder, name) => {
                let value = object.get(holder).and_then(|holder| holder.get(*name));
                if value.is_some_and(|value| !value.is_null()) {
                    found.add(*feature);
                }
            }
            Node::Under(name, below) => {
                if let Some(value) = object.get(name) {
                    look_below(below, value, found);
                }
            }
            Node::Of(..) | Node::Each(_) => {}
        }
    }
}

fn look_below(nodes: &[Node], value: &Value, found: &mut Features) {
    match (nodes, value) {
        ([Node::Each(below)], Value::Array(items)) => {
            items.iter().for_each(|item| look_below(below, item, found));
        }
        ([Node::Each(below)], Value::Object(entries)) => {
            entries.values().for_each(|entry| look_below(below, entry, found));
        }
        (_, Value::Object(object)) => look(nodes, object, found),
        _ => {}
    }
}

fn remove(nodes: &[Node], object: &mut ObjectMap, kept: Features) {
    for node in nodes {
        match node {
            Node::Of(feature, name) if !kept.contains(*feature) => {
                object.shift_remove(name);
            }
            Node::OnlyOf(feature, holder, name) if !kept.contains(*feature) => {
                let Some(Value::Object(members)) = object.get_mut(holder) else { continue };
                if members.shift_remove(name).is_some() && members.is_empty() {
                    object.shift_remove(holder);
                }
            }
            Node::Under(name, below) => {
                if let Some(value) = object.get_mut(name) {
                    remove_below(below, value, kept);
                }
            }
            Node::Of(..) | Node::OnlyOf(..) | Node::Each(_) => {}
        }
    }
}

fn remove_below(nodes: &[Node], value: &mut Value, kept: Features) {
    match (nodes, value) {
        ([Node::Each(below)], Value::Array(items)) => {
            items.iter_mut().for_each(|item| remove_below(below, item, kept));
        }
        ([Node::Each(below)], Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| remove_below(below, entry, kept));
        }
        (_, Value::Object(object)) => remove(nodes, object, kept),
        _ => {}
    }
}
