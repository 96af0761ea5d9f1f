//! Warnings about quotas whose requests are larger than their limits.

use std::cmp::Ordering;

use crate::kinds::prelude::*;
use crate::quantity;

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    let hard = spec.get("hard");
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (requests, limits) = (format!("requests.{name}"), format!("limits.{name}"));
        // The requests of these two also have names without a prefix.
        let bare = matches!(name, "cpu" | "memory") && !hard.key(&requests).is_set();
        let requests = if bare { name } else { &requests };
        let (request, limit) = (hard.key(requests), hard.key(&limits));
        let more = quantity::compare(request.text(), limit.text()) == Ok(Ordering::Greater);
        if request.is_set() && limit.is_set() && more {
            let (request, limit) = (request.text(), limit.text());
            remarks
                .say(format!("ResourceQuota {requests} ({request}) should be less than {limits} ({limit})"));
        }
    }
}
