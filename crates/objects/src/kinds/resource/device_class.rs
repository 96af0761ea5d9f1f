//! DeviceClasses.

use crate::fields::ObjectMap;
use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::columns::NAME_AND_AGE;
use crate::kinds::behavior::definition::cluster;
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::Strategy;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::behavior::warnings::KindWarnings;
use crate::kinds::resource::shared::{Age, CONFIGURATIONS, configuration, each, selectors};

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

/// Validates a name by which Pods may ask for devices of the class (`k8s-extended-resource-name`).
fn extended_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if !text.contains('/') {
        errors.invalid(at, text, "a name must be a domain-prefixed path, such as 'example.com/my-prop'");
    } else if text.contains("kubernetes.io/") {
        errors.invalid(at, text, "must not have \"kubernetes.io/\" domain");
    }
    if text.starts_with("requests.") {
        errors.invalid(at, text, "must not have \"requests.\" prefix");
    }
    // A quota of it has this name.
    errors.invalid_each(at, text, label_key(&format!("requests.{text}")));
}

pub fn spec(spec: &At<'_, '_>, age: Age, errors: &mut Errors) {
    selectors(&spec.get("selectors"), errors);
    each(&spec.get("config"), CONFIGURATIONS, errors, |config, errors| configuration(config, age, errors));
    let name = spec.get("extendedResourceName");
    if let Some(text) = name.opt_text() {
        extended_name(&name, text, errors);
    }
}
