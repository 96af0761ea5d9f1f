//! DeviceClasses.

use crate::kinds::behavior::columns::NAME_AND_AGE;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;
use crate::kinds::resource::shared::{Age, CONFIGURATIONS, configuration, selectors, within};

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("deviceclasses", "DeviceClass").generation().returns_deleted(),
    strategy: Strategy { names: NameFormat::LongName, status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &NAME_AND_AGE,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), Age::New, errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    let kept = same(spec.get("config").value(), old.get("config").value());
    self::spec(&spec, if kept { Age::Stored } else { Age::New }, errors);
}

pub fn spec(spec: &At<'_, '_>, age: Age, errors: &mut Errors) {
    selectors(&spec.get("selectors"), errors);
    for config in within(&spec.get("config"), CONFIGURATIONS) {
        configuration(&config, age, errors);
    }
}
