//! Options of DELETE and deletecollection: from the body, or from the query if there is no body.

use super::DryRun;
use super::query::Query;
use crate::causes::Cause;
use crate::error::Error;
use crate::gotext;
use crate::kinds::behavior::deletion::{Dependents, Propagation};
use crate::tree::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub dry_run: DryRun,
    /// Seconds as sent; may be negative.
    pub grace_period: Option<i64>,
    pub dependents: Dependents,
    pub preconditions: Preconditions,
    /// Deletes an object only if it cannot be read.
    pub ignore_read_error: bool,
}

/// The option of [`DeleteOptions::ignore_read_error`].
pub const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Preconditions on the object, compared as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// The options of a request that sends none.
    pub const NONE: Self = Self {
        dry_run: DryRun::No,
        grace_period: None,
        dependents: Dependents::Unspecified,
        preconditions: Preconditions { uid: None, resource_version: None },
        ignore_read_error: false,
    };

    /// Parses the options. `body` is the decoded body, `None` if it was empty. If there is a body, the query is
    /// ignored.
    pub fn parse(body: Option<&Value>, query: &Query) -> Result<Self, Error> {
        match body {
            Some(body) => Raw::from_body(body).map_err(Error::BadRequest)?.validate(),
            None => Raw::from_query(query)?.validate(),
        }
    }
}

impl DeleteOptions {
    /// Puts the options into an object, as upstream's type prints them.
    pub fn print(&self, into: &mut Map) {
        if let Some(seconds) = self.grace_period {
            into.insert("gracePeriodSeconds", seconds.into());
        }
        let mut preconditions = Map::new();
        if let Some(uid) = &self.preconditions.uid {
            preconditions.insert("uid", uid.as_str().into());
        }
        if let Some(version) = &self.preconditions.resource_version {
            preconditions.insert("resourceVersion", version.as_str().into());
        }
        if !preconditions.is_empty() {
            into.insert("preconditions", Value::Object(preconditions));
        }
        match self.dependents {
            Dependents::Unspecified => {}
            Dependents::Orphan(orphan) => _ = into.insert("orphanDependents", orphan.into()),
            Dependents::Policy(policy) => {
                let policy = match policy {
                    Propagation::Foreground => "Foreground",
                    Propagation::Background => "Background",
                    Propagation::Orphan => "Orphan",
                };
                into.insert("propagationPolicy", policy.into());
            }
        }
        if self.dry_run == DryRun::Yes {
            into.insert("dryRun", crate::tree::json!(["All"]));
        }
        if self.ignore_read_error {
            into.insert(IGNORE_READ_ERROR, true.into());
        }
    }

    /// 422 of a request that deletes many objects, if it wants to delete what cannot be read.
    pub fn refuse_unread(&self) -> Result<(), Error> {
        if !self.ignore_read_error {
            return Ok(());
        }
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        Err(Error::invalid_options("DeleteOptions", vec![Cause::invalid(IGNORE_READ_ERROR, true, why)]))
    }
}

#[derive(Default)]
struct Raw<'a> {
    dry_run: Vec<&'a str>,
    grace_period: Option<i64>,
    orphan: Option<bool>,
    policy: Option<&'a str>,
    has_preconditions: bool,
    uid: Option<&'a str>,
    resource_version: Option<&'a str>,
    ignore_read_error: bool,
}

impl<'a> Raw<'a> {
    fn from_query(query: &'a Query) -> Result<Self, Error> {
        let given = |name| query.get(name).filter(|value| !value.is_empty());
        Ok(Self {
            dry_run: query.all("dryRun").collect(),
            grace_period: query.integer("gracePeriodSeconds")?,
            orphan: query.flag("orphanDependents"),
            policy: query.get("propagationPolicy"),
            has_preconditions: given("uid").or(given("resourceVersion")).is_some(),
            uid: given("uid"),
            resource_version: given("resourceVersion"),
            ignore_read_error: query.flag(IGNORE_READ_ERROR) == Some(true),
        })
    }

    fn from_body(body: &'a Value) -> Result<Self, String> {
        let Some(body) = body.as_object() else { return Err(mismatch(body, "", "v1.DeleteOptions")) };
        if text(body, "kind", "string")?.is_some_and(|kind| !kind.is_empty() && kind != "DeleteOptions") {
            return Err("decoded object cannot be converted to DeleteOptions".to_owned());
        }
        let preconditions = match body.get("preconditions") {
            None | Some(Value::Null) => None,
            Some(Value::Object(preconditions)) => Some(preconditions),
            Some(other) => return Err(mismatch(other, "preconditions", "v1.Preconditions")),
        };
        let precondition = |key, kind| match preconditions {
            Some(preconditions) => text(preconditions, key, kind),
            None => Ok(None),
        };
        Ok(Self {
            dry_run: strings(body, "dryRun")?,
            grace_period: integer(body, "gracePeriodSeconds")?,
            orphan: boolean(body, "orphanDependents")?,
            policy: text(body, "propagationPolicy", "v1.DeletionPropagation")?,
            has_preconditions: preconditions.is_some(),
            uid: precondition("uid", "types.UID")?,
            resource_version: precondition("resourceVersion", "string")?,
            ignore_read_error: boolean(body, IGNORE_READ_ERROR)? == Some(true),
        })
    }

    fn validate(self) -> Result<DeleteOptions, Error> {
        let mut causes = Vec::new();
        let dependents = self.dependents(&mut causes);
        let dry_run = DryRun::validate(&self.dry_run, &mut causes);
        self.stands_alone(&mut causes);
        if !causes.is_empty() {
            return Err(Error::invalid_options("DeleteOptions", causes));
        }
        let preconditions = Preconditions {
            uid: self.uid.map(str::to_owned),
            resource_version: self.resource_version.map(str::to_owned),
        };
        let (grace_period, ignore_read_error) = (self.grace_period, self.ignore_read_error);
        Ok(DeleteOptions { dry_run, grace_period, dependents, preconditions, ignore_read_error })
    }

    /// An object that cannot be read has no preconditions, dependents or grace period that could be respected
    /// (`ValidateIgnoreStoreReadError`).
    fn stands_alone(&self, causes: &mut Vec<Cause>) {
        let others = [
            (self.policy.is_some(), "propagationPolicy"),
            (self.orphan.is_some(), "orphanDependents"),
            (self.grace_period.is_some(), "gracePeriodSeconds"),
            (self.has_preconditions, "preconditions"),
        ];
        for (_, other) in others.iter().filter(|(is_set, _)| *is_set && self.ignore_read_error) {
            let why = format!("cannot be set together with .{other}");
            causes.push(Cause::invalid(IGNORE_READ_ERROR, true, &why));
        }
    }

    fn dependents(&self, causes: &mut Vec<Cause>) -> Dependents {
        let Some(policy) = self.policy else {
            return self.orphan.map_or(Dependents::Unspecified, Dependents::Orphan);
        };
        let field = "propagationPolicy";
        let value = gotext::json(&policy.into());
        if self.orphan.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid(field, &value, why));
        }
        Dependents::Policy(match policy {
            "Foreground" => Propagation::Foreground,
            "Background" => Propagation::Background,
            "Orphan" => Propagation::Orphan,
            _ => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                causes.push(Cause::not_supported(field, &value, &supported));
                return Dependents::Unspecified;
            }
        })
    }
}

fn text<'a>(body: &'a Map, key: &str, kind: &str) -> Result<Option<&'a str>, String> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mismatch(other, key, kind)),
    }
}

fn integer(body: &Map, key: &str) -> Result<Option<i64>, String> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| mismatch(value, key, "int64")),
    }
}

fn boolean(body: &Map, key: &str) -> Result<Option<bool>, String> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_bool().map(Some).ok_or_else(|| mismatch(value, key, "bool")),
    }
}

fn strings<'a>(body: &'a Map, key: &str) -> Result<Vec<&'a str>, String> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            let item = |item: &'a Value| item.as_str().ok_or_else(|| mismatch(item, key, "string"));
            items.iter().map(item).collect()
        }
        Some(other) => Err(mismatch(other, key, "[]string")),
    }
}

/// `encoding/json`'s text for a value of the wrong type.
fn mismatch(value: &Value, key: &str, kind: &str) -> String {
    let found = match value {
        Value::Number(number) => format!("number {number}"),
        other => gotext::json_kind(other).to_owned(),
    };
    if key.is_empty() {
        return format!("json: cannot unmarshal {found} into Go value of type {kind}");
    }
    format!("json: cannot unmarshal {found} into Go struct field DeleteOptions.{key} of type {kind}")
}
