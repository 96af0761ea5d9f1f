//! Kinds whose labels default to those of their template. Upstream's defaults apply again when it reads what the kind's
//! strategy has made (`SetDefaults_Job`, `SetDefaults_ReplicationController`).

use crate::fields;
use crate::kinds::prelude::*;

pub fn adopt(object: &mut ObjectMap) {
    let labels = |object: &ObjectMap, path: &[&str]| {
        fields::at(object, path).and_then(Value::as_object).filter(|labels| !labels.is_empty()).cloned()
    };
    if labels(object, &["metadata", "labels"]).is_some() {
        return;
    }
    if let Some(own) = labels(object, &["spec", "template", "metadata", "labels"]) {
        fields::object_mut(object, "metadata").insert("labels", own.into());
    }
}
