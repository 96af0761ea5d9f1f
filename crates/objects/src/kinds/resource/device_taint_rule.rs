//! DeviceTaintRules: taints that administrators put on devices.

use crate::fields;
use crate::kinds::behavior::columns::age;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::rules::condition;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::core::volume_source::csi_driver;
use crate::kinds::prelude::*;
use crate::kinds::resource::name;
use crate::kinds::resource::taint::taint;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("devicetaintrules", "DeviceTaintRule").sub(&["status"]).generation().conditional(),
    strategy: Strategy { status_metadata: RESET, hooks: &EffectTime, ..Strategy::PLAIN },
    rules: Rules::timeless(create).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const CONDITIONS: usize = 8;

/// Keeps `timeAdded` the time of the taint's effect, from which tolerations count.
#[derive(Debug)]
struct EffectTime;

impl Hooks for EffectTime {
    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        let is_kept =
            |name| fields::at(new, &["spec", "taint", name]) == fields::at(old, &["spec", "taint", name]);
        if !is_kept("effect") && is_kept("timeAdded") {
            let taint = fields::object_mut(fields::object_mut(new, "spec"), "taint");
            taint.insert("timeAdded", writer.now.into());
        }
    }
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let conditions = status.get("conditions");
    condition::validate_all(&conditions, errors);
    errors.at_most(&conditions, CONDITIONS);
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let devices = spec.get("deviceSelector");
    let (driver, pool, device) = (devices.get("driver"), devices.get("pool"), devices.get("device"));
    if driver.is_set() {
        csi_driver(&driver, errors);
    }
    if pool.is_set() {
        name::pool(&pool, errors);
    }
    if device.is_set() {
        errors.in_format(&device, dns1123_label);
    }
    taint(&spec.get("taint"), errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Key", "Key of the taint.").at("spec.taint.key"),
        text_column("Value", "Value of the taint.").at("spec.taint.value"),
        text_column("Effect", "What the taint does to pods that do not tolerate it.").at("spec.taint.effect"),
        text_column("TimeAdded", "Time since the taint was added.").of(|object, now| {
            let added = &object["spec"]["taint"]["timeAdded"];
            if added.is_string() { age::since(added, now).into() } else { "".into() }
        }),
        AGE,
    ],
    ..PLAIN
};
