//! What is told of the devices of a claim goes when the devices do.

use std::collections::HashSet;

use crate::api::{ObjectMap, fields};
use crate::tree::Value;

pub(super) fn prepare_status_update(new: &mut ObjectMap, old: &ObjectMap) {
    let (held, hold) = (allocated(old), allocated(new));
    let Some(Value::Object(status)) = new.get_mut("status") else { return };
    let Some(Value::Array(devices)) = status.get_mut("devices") else { return };
    devices.retain(|device| {
        let device = key(device);
        !held.contains(&device) || hold.contains(&device)
    });
    if devices.is_empty() {
        status.shift_remove("devices");
    }
}

fn allocated(claim: &ObjectMap) -> HashSet<[String; 4]> {
    fields::items(claim, &["status", "allocation", "devices", "results"]).iter().map(key).collect()
}

/// Which device it is.
fn key(device: &Value) -> [String; 4] {
    let text = |name| device.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    ["driver", "pool", "device", "shareID"].map(text)
}
