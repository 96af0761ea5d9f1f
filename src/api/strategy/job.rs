//! Jobs find their pods by the job's uid (`pkg/registry/batch/job/strategy.go`, `generateSelector`).

use crate::api::{ObjectMap, fields};
use crate::tree::Value;

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
/// Without a prefix from older releases, kept for clients that select by them.
const OLD_UID_LABEL: &str = "controller-uid";
const OLD_NAME_LABEL: &str = "job-name";

/// Values that are already there stay: validation refuses those that contradict.
pub(super) fn prepare_create(object: &mut ObjectMap) {
    if fields::at(object, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let uid = fields::text(object, &["metadata", "uid"]).to_owned();
    let name = fields::text(object, &["metadata", "name"]).to_owned();
    let spec = fields::object_mut(object, "spec");
    let template = fields::object_mut(fields::object_mut(spec, "template"), "metadata");
    let labels = fields::object_mut(template, "labels");
    for (key, value) in
        [(OLD_NAME_LABEL, &name), (OLD_UID_LABEL, &uid), (NAME_LABEL, &name), (UID_LABEL, &uid)]
    {
        labels.entry(key).or_insert_with(|| value.as_str().into());
    }
    let selector = fields::object_mut(fields::object_mut(spec, "selector"), "matchLabels");
    selector.entry(UID_LABEL).or_insert_with(|| uid.into());
}
