//! Validation of custom objects: what the schema of their version says, in upstream's order.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rowplane_cel::rules::{Findings, OBJECT_BUDGET, Rules};

use super::CustomVersion;
use crate::causes::{Cause, CauseReason, Causes};
use crate::fields;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::rules::object_meta;
use crate::kinds::prelude::*;
use crate::long_work;
use crate::schema::kind::Shape;
use crate::schema::resource::Declaration as _;
use crate::schema::structural::{Structural, blocks_rules, violation_causes};

/// The text that stands in place of the rules' verdicts where they were not asked.
const UNCHECKED: &str = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation";

impl CustomVersion {
    fn schema(&self) -> Option<&Structural> {
        match &self.kind.shape {
            Shape::Structural(schema) => Some(schema),
            Shape::Go(_) | Shape::Opaque => None,
        }
    }

    /// Errors of a new object; `scale` holds those of its replicas.
    pub fn create_causes(&self, object: &ObjectMap, scale: Vec<Cause>) -> Causes {
        let Some(schema) = self.schema() else { return of_scale(scale) };
        let mut causes = schema.validate(object);
        causes.extend(scale);
        embedded(schema, object, &mut causes);
        causes.append(schema.list_type_causes(object));
        causes
    }

    /// Errors of a new version of `old`, or of a part of it. A fault that has not changed may stay.
    pub fn update_causes(&self, part: Part, new: &ObjectMap, old: &ObjectMap, scale: Vec<Cause>) -> Causes {
        let Some(schema) = self.schema() else { return of_scale(scale) };
        let mut causes = match part {
            // A status that was taken away is not wrong.
            Part::Status => match new.get("status") {
                Some(status) => schema.validate_status(status, old.get("status")),
                None => Causes::default(),
            },
            _ => schema.validate_update(new, old),
        };
        causes.extend(scale);
        if part != Part::Status {
            embedded(schema, new, &mut causes);
        }
        if schema.list_type_causes(old).is_empty() {
            causes.append(schema.list_type_causes(new));
        }
        causes
    }
}

/// The `x-kubernetes-validations` of a version's schema.
#[derive(Debug)]
pub struct CompiledRules {
    rules: Rules,
    /// The most that they have cost for an object; unknown before the first.
    dearest: AtomicI64,
}

/// Rules that cost more than so many units take milliseconds.
const LONG: i64 = 50_000;

impl CustomVersion {
    /// The rules of the schema, if it has any. Whoever asks first has them compiled, where no other request waits for it,
    /// and is told how long that took.
    pub async fn rules(&self, compiled: impl FnOnce(Duration)) -> Option<&CompiledRules> {
        let compile = async || {
            let began = Instant::now();
            let rules = long_work::run(|| self.compile_rules());
            if rules.is_some() {
                compiled(began.elapsed());
            }
            rules
        };
        self.rules.get_or_init(compile).await.as_ref()
    }

    fn compile_rules(&self) -> Option<CompiledRules> {
        let spec = self.source.spec()?;
        let mut versions = fields::items(&spec, &["versions"]).iter().filter_map(Value::as_object);
        let entry = versions.find(|entry| fields::text(entry, &["name"]) == self.kind.gvk.version())?;
        let rules = Rules::compile(fields::at(entry, &["schema", "openAPIV3Schema"])?, true)?;
        rules.prepare();
        Some(CompiledRules { rules, dearest: AtomicI64::new(i64::MAX) })
    }
}

impl CompiledRules {
    /// The errors that the rules find in an object in which `found` is wrong already, and, for the client's eyes only,
    /// warnings about errors that were there before and have not changed.
    pub fn causes(&self, found: &Causes, new: &ObjectMap, old: Option<&ObjectMap>) -> (Causes, Vec<String>) {
        if found.iter().any(|cause| blocks_rules(cause.reason)) {
            let mut causes = Causes::default();
            causes.push(Cause::new(CauseReason::Invalid, "<nil>", UNCHECKED.to_owned()));
            return (causes, Vec::new());
        }
        let mut found = self.ask(new, old);
        let warnings = std::mem::take(&mut found.warnings);
        (violation_causes(found), warnings)
    }

    /// Asks the rules; where they have been dear before, without keeping other requests waiting.
    fn ask(&self, new: &ObjectMap, old: Option<&ObjectMap>) -> Findings {
        let dearest = self.dearest.load(Ordering::Relaxed);
        let ask = || self.rules.validate(new, old);
        let found = if dearest > LONG { long_work::run(ask) } else { ask() };
        let cost = OBJECT_BUDGET.saturating_sub(found.budget);
        match dearest {
            i64::MAX => self.dearest.store(cost, Ordering::Relaxed),
            _ => _ = self.dearest.fetch_max(cost, Ordering::Relaxed),
        }
        found
    }
}

fn of_scale(scale: Vec<Cause>) -> Causes {
    let mut causes = Causes::default();
    causes.extend(scale);
    causes
}

fn embedded(schema: &Structural, object: &ObjectMap, causes: &mut Causes) {
    schema.embedded(object, &mut |place, inner| object_meta::embedded(&place.to_string(), inner, causes));
}
