//! Jobs.

pub mod columns;
pub mod indexes;
pub mod policy;
pub mod status;
pub mod warnings;

use crate::fields;
use crate::gotext::quote;
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::gated_fields::Feature::WorkloadWithJob;
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Of, Under};
use crate::kinds::behavior::rules::same::{IMMUTABLE, immutable, same};
use crate::kinds::behavior::rules::{domain_path, selector};
use crate::kinds::behavior::selectable::{Field, Refusal};
use crate::kinds::core::pod_spec;
use crate::kinds::core::pod_spec::gated_fields::TEMPLATE;
use crate::kinds::core::pod_template::labels;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("jobs", "Job").category("all").sub(&["status"]).generation().orphans(),
    strategy: Strategy { gated_fields: &[Under("spec", GATED_SPEC)], hooks: &JobHooks, ..Strategy::PLAIN },
    rules: Rules::new(create, update).with_status(status::status),
    warnings: KindWarnings::new(warnings::warn, warnings::warn_update).of_unspecified_dependents(ORPHANS),
    columns: &columns::COLUMNS,
    fields: selectable_fields,
    other_version: None,
};

const ORPHANS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                       them or set propagationPolicy=Orphan to suppress this warning";

fn selectable_fields() -> SelectableFields {
    let successful =
        Field { label: "status.successful".into(), paths: vec!["status.succeeded".into()], zero: "0" };
    SelectableFields::namespaced(vec![successful]).with_refusal(Refusal::Job)
}

#[derive(Debug)]
struct JobHooks;

impl Hooks for JobHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        select_own_pods(object);
        labels::adopt(object);
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, _: &ObjectMap, _: &Writer<'_>) {
        labels::adopt(new);
    }
}

const HIGH_COMPLETIONS: i64 = 100_000;

const LIMIT_FOR_HIGH_COMPLETIONS: i64 = 10_000;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, job) = (At::member(object, "metadata"), At::member(object, "spec"));
    generated_selector(&metadata, &job, errors);
    whole(&metadata, &job, errors);
}

/// Rules for new and for changed jobs.
fn whole(metadata: &At<'_, '_>, job: &At<'_, '_>, errors: &mut Errors) {
    spec(job, errors);
    let completions = job.get("completions").int();
    if is_indexed(job) && completions > 0 {
        let name = metadata.get("name");
        let host = format!("{}-{}", name.text(), completions - 1);
        if !dns1123_label(&host).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {host}");
            errors.invalid(&name, name.text(), &why);
        }
    }
}

pub fn is_indexed(spec: &At<'_, '_>) -> bool {
    spec.get("completionMode").text() == "Indexed"
}

/// Validates the selector of a new job, which is generated from the job's uid unless the user chooses it, and the same
/// labels of the template.
fn generated_selector(metadata: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let selector = spec.get("selector");
    if spec.get("manualSelector").flag() || !selector.is_set() {
        return;
    }
    let (uid, name) = (metadata.get("uid").text(), metadata.get("name").text());
    if uid.is_empty() {
        errors.required(&metadata.get("uid"), "");
    }
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = spec.dig(&["template", "metadata", "labels"]);
    for (key, value) in &expected {
        let label = labels.key(key);
        if !label.is_set() {
            errors.required(&label, &format!("must be '{value}'"));
        } else if label.text() != *value {
            errors.invalid(&label, selector::shown_map(&labels), &format!("must be '{value}'"));
        }
    }
    let all: Map = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let all = Value::Object(all);
    if selector::matches(&selector, &At::root(&all)) == Some(false) {
        errors.invalid(&selector, selector::shown(&selector), "`selector` not auto-generated");
    }
}

fn spec(spec: &At<'_, '_>, errors: &mut Errors) {
    common_spec(spec, errors);
    let selector = spec.get("selector");
    if selector.is_set() {
        selector::validate(&selector, errors);
    } else {
        errors.required(&selector, "");
    }
    let template = spec.get("template");
    let labels = template.dig(&["metadata", "labels"]);
    if selector::matches(&selector, &labels) == Some(false) {
        selector::mismatch(&labels, errors);
    }
}

/// Rules for jobs and for templates of jobs.
fn common_spec(spec: &At<'_, '_>, errors: &mut Errors) {
    const COUNTS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    errors.none_negative(spec, &COUNTS);
    let per_index = spec.get("backoffLimitPerIndex");
    if spec.get("maxFailedIndexes").is_set() && !per_index.is_set() {
        errors.required(&per_index, "when maxFailedIndexes is specified");
    }
    let manager = spec.get("managedBy");
    if let Some(text) = manager.opt_text() {
        domain_path(&manager, text, errors);
        if text.len() > 63 {
            errors.too_long(&manager, 63);
        }
    }
    completion_mode(spec, errors);
    let policy = spec.get("podFailurePolicy");
    if policy.is_set() {
        policy::failure(&policy, spec, errors);
    }
    let success = spec.get("successPolicy");
    if success.is_set() {
        policy::success(&success, spec, errors);
    }
    replacement(spec, errors);
    pod_spec::template(&spec.get("template"), pod_spec::Owner::Template, errors);
    restart_policy(spec, errors);
}

fn completion_mode(spec: &At<'_, '_>, errors: &mut Errors) {
    let mode = spec.get("completionMode");
    if let Some(text) = mode.opt_text() {
        errors.one_of(&mode, text, &["NonIndexed", "Indexed"]);
    }
    if is_indexed(spec) {
        indexed(spec, errors);
    }
    if matches!(mode.opt_text(), None | Some("NonIndexed")) {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let field = spec.get(name);
            if field.is_set() {
                errors.invalid(&field, field.int(), "requires indexed completion mode");
            }
        }
    }
}

fn indexed(spec: &At<'_, '_>, errors: &mut Errors) {
    let (completions, parallelism, failed) =
        (spec.get("completions"), spec.get("parallelism"), spec.get("maxFailedIndexes"));
    if !completions.is_set() {
        errors.required(&completions, "when completion mode is Indexed");
    }
    if parallelism.int() > 100_000 {
        let why = "must be less than or equal to 100000 when completion mode is Indexed";
        errors.invalid(&parallelism, parallelism.int(), why);
    }
    if completions.is_set() && failed.int() > completions.int() {
        errors.invalid(&failed, failed.int(), "must be less than or equal to completions");
    }
    if failed.int() > 100_000 {
        errors.invalid(&failed, failed.int(), "must be less than or equal to 100000");
    }
    if completions.int() <= HIGH_COMPLETIONS || !spec.get("backoffLimitPerIndex").is_set() {
        return;
    }
    if !failed.is_set() {
        errors.required(&failed, "must be specified when completions is above 100000");
    }
    for field in [parallelism, failed] {
        if field.int() > LIMIT_FOR_HIGH_COMPLETIONS {
            let why = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index";
            errors.invalid(&field, field.int(), why);
        }
    }
}

fn replacement(spec: &At<'_, '_>, errors: &mut Errors) {
    let policy = spec.get("podReplacementPolicy");
    let Some(text) = policy.opt_text() else { return };
    if spec.get("podFailurePolicy").is_set() {
        errors.one_of(&policy, text, &["Failed"]);
    } else {
        errors.one_of(&policy, text, &["Failed", "TerminatingOrFailed"]);
    }
}

fn restart_policy(spec: &At<'_, '_>, errors: &mut Errors) {
    let policy = spec.dig(&["template", "spec", "restartPolicy"]);
    match policy.text() {
        "" | "Always" => errors.required(&policy, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.get("podFailurePolicy").is_set() => {
            let why = format!("only {} is supported when podFailurePolicy is specified", quote("Never"));
            errors.invalid(&policy, "OnFailure", &why);
        }
        other => _ = errors.one_of(&policy, other, &["OnFailure", "Never"]),
    }
}

/// Rules for the job template of a cron job.
pub fn template(at: &At<'_, '_>, errors: &mut Errors) {
    let spec = at.get("spec");
    common_spec(&spec, errors);
    let selector = spec.get("selector");
    if selector.is_set() {
        errors.invalid(&selector, selector::shown(&selector), "`selector` will be auto-generated");
    }
    if spec.get("manualSelector").flag() {
        errors.not_supported(&spec.get("manualSelector"), true, &["nil", "false"]);
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (new_spec, old_spec) = (At::member(new, "spec"), At::member(old, "spec"));
    let metadata = At::member(new, "metadata");
    whole(&metadata, &new_spec, errors);
    completions_stay(&new_spec, &old_spec, errors);
    let selector = new_spec.get("selector");
    if !same(selector.value(), old_spec.get("selector").value()) {
        errors.invalid(&selector, selector::shown(&selector), IMMUTABLE);
    }
    template_stays(&new_spec, &old_spec, &At::member(old, "status"), errors);
    for name in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"] {
        immutable(&new_spec.get(name), &old_spec.get(name), errors);
    }
    let success = new_spec.get("successPolicy");
    if !same(success.value(), old_spec.get("successPolicy").value()) {
        errors.invalid(&success, policy::internal_success(&success), IMMUTABLE);
    }
}

fn completions_stay(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let completions = new.get("completions");
    if same(completions.value(), old.get("completions").value()) {
        return;
    }
    if !is_indexed(new) {
        errors.invalid(&completions, completions.value(), IMMUTABLE);
    } else if completions.is_set() && completions.int() != new.get("parallelism").opt_int().unwrap_or(1) {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.invalid(&completions, completions.int(), why);
    }
}

/// The template must not change. While the job is suspended, its scheduling constraints and resources may change.
fn template_stays(new: &At<'_, '_>, old: &At<'_, '_>, status: &At<'_, '_>, errors: &mut Errors) {
    let (template, before) = (new.get("template"), old.get("template"));
    if same(template.value(), before.value()) {
        return;
    }
    let suspended = old.get("suspend").flag();
    let condition = |condition: At<'_, '_>| {
        condition.get("type").text() == "Suspended" && condition.get("status").text() == "True"
    };
    let idle = !status.get("startTime").is_set() || status.get("conditions").items().any(condition);
    let mut expected = before.value().clone();
    let open = suspended && idle && status.get("active").int() == 0;
    if open {
        take_scheduling(&mut expected, template.value());
        take_resources(&mut expected, template.value());
    }
    if !same(template.value(), &expected) {
        let place = if open { new.get("template.spec") } else { template };
        // Upstream prints its internal struct.
        errors.invalid(&place, template.value(), IMMUTABLE);
    }
}

fn take_scheduling(expected: &mut Value, new: &Value) {
    let mut take = |path: &[&str]| {
        let (last, holders) = path.split_last().unwrap_or((&"", &[]));
        let value =
            path.iter().try_fold(new, |value, name| value.get(*name)).filter(|value| !value.is_null());
        let mut holder = &mut *expected;
        for name in holders {
            if holder.get(*name).is_none_or(Value::is_null) {
                if value.is_none() {
                    return;
                }
                holder[*name] = Value::Object(Map::new());
            }
            holder = &mut holder[*name];
        }
        let Some(map) = holder.as_object_mut() else { return };
        match value {
            Some(value) => _ = map.insert((*last).to_owned(), value.clone()),
            None => _ = map.shift_remove(last),
        }
    };
    take(&["spec", "affinity", "nodeAffinity"]);
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(&["spec", name]);
    }
    for name in ["annotations", "labels"] {
        take(&["metadata", name]);
    }
}

fn take_resources(expected: &mut Value, new: &Value) {
    for list in ["containers", "initContainers"] {
        let path = ["spec", list];
        let new = path.iter().try_fold(new, |value, name| value.get(*name)).and_then(Value::as_array);
        let old = expected.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        let (Some(new), Some(old)) = (new, old) else { continue };
        if new.len() != old.len() {
            continue;
        }
        for (old, new) in old.iter_mut().zip(new).filter(|(old, new)| old.get("name") == new.get("name")) {
            let Some(old) = old.as_object_mut() else { continue };
            match new.get("resources") {
                Some(resources) => _ = old.insert("resources", resources.clone()),
                None => _ = old.shift_remove("resources"),
            }
        }
    }
}

pub const GATED_SPEC: &[Node] = &[Under("template", TEMPLATE), Of(WorkloadWithJob, "scheduling")];

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";

const NAME_LABEL: &str = "batch.kubernetes.io/job-name";

/// The label of older releases without a prefix, which is kept for clients that select by it.
const OLD_UID_LABEL: &str = "controller-uid";

const OLD_NAME_LABEL: &str = "job-name";

/// Generates selector and labels. Existing values stay; validation refuses contradictory ones.
fn select_own_pods(object: &mut ObjectMap) {
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
