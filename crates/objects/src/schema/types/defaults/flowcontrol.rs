//! Priority and fairness (`pkg/apis/flowcontrol/v1/defaults.go`).

use super::set::{if_absent, if_zero};
use crate::fields::ObjectMap;

pub(super) fn flow_schema(spec: &mut ObjectMap) {
    if_zero(spec, "matchingPrecedence", 1000);
}

pub(super) fn exempt(configuration: &mut ObjectMap) {
    if_absent(configuration, "nominalConcurrencyShares", 0);
    if_absent(configuration, "lendablePercent", 0);
}

pub(super) fn limited(configuration: &mut ObjectMap) {
    if_absent(configuration, "nominalConcurrencyShares", 30);
    if_absent(configuration, "lendablePercent", 0);
}

pub(super) fn queuing(configuration: &mut ObjectMap) {
    for (name, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
        if_zero(configuration, name, default);
    }
}
