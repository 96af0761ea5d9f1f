//! The rules in a schema: what they may speak of, whether they fit, and what they may cost.

use std::collections::HashSet;

use rowplane_cel::decl::{Decl, LARGEST_REQUEST, of_schema};
use rowplane_cel::rules::{Assessment, Expression, RuleScope};

use crate::gotext;
use crate::kinds::behavior::rules::at::Path;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::prelude::*;

/// The limits of estimated costs: of one expression, and of all expressions of a schema together.
const EXPRESSION_LIMIT: u64 = 10_000_000;
const SCHEMA_LIMIT: u64 = 100_000_000;
/// The cost from which an expression is named if all of a schema together cost too much, and the most that are named.
const DEAR: u64 = SCHEMA_LIMIT / 100;
const NAMED: usize = 4;
/// The type name of a rule's `self`; upstream makes a new one each time.
const NAME: &str = "selfType";

/// The expressions that the stored definition has already, wherever they stand.
#[derive(Debug, Default)]
pub struct StoredExpressions {
    rules: HashSet<String>,
    messages: HashSet<String>,
}

impl StoredExpressions {
    /// Adds those of a schema.
    pub fn read(&mut self, schema: &Value) {
        let texts = |name: &str| {
            let rules =
                schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
            let texts = rules.filter_map(|rule| Some(rule.get(name)?.as_str()?.to_owned()));
            texts.collect::<Vec<_>>()
        };
        self.rules.extend(texts("rule"));
        self.messages.extend(texts("messageExpression"));
        super::subschemas::schemas_below(schema).for_each(|below| self.read(below));
    }
}

fn provenance(known: &HashSet<String>, expression: &At<'_, '_>) -> Expression {
    if known.contains(expression.text()) { Expression::Stored } else { Expression::New }
}

/// The place of a schema: what its rules may speak of, and how many values of it one object may have.
#[derive(Clone, Debug)]
pub struct Spot<'p> {
    /// The most values, if every list and map around is bounded.
    most: Option<u64>,
    types: Types,
    /// The outermost list or map around this place whose elements cannot be matched with those of the old object.
    fleeting: Option<&'p Path<'p>>,
}

/// Types of the values at a place, which are only found out from the first rules downwards.
#[derive(Clone, Debug)]
enum Types {
    Unasked,
    Known(Decl),
    /// Expressions cannot speak of the values here or around.
    Unspeakable,
}

impl Types {
    fn of(schema: &Value, root: bool) -> Self {
        let decl = of_schema(schema, root, NAME);
        if decl.cel_type().is_some() { Self::Known(decl) } else { Self::Unspeakable }
    }
}

impl<'p> Spot<'p> {
    /// The place of a whole schema; `root` is the root of a resource.
    pub fn root(schema: &Value, root: bool) -> Self {
        let types = if has_rules(schema) { Types::of(schema, root) } else { Types::Unasked };
        Self { most: Some(1), types, fleeting: None }
    }

    pub fn property(&self, parent: &'p At<'_, '_>, name: &str, schema: &Value) -> Self {
        let is_known = matches!(parent.get("x-kubernetes-map-type").text(), "" | "granular" | "atomic");
        let fleeting = self.fleeting.or((!is_known).then_some(parent.path()));
        Self { fleeting, ..self.below(parent, |decl| decl.member(name), schema) }
    }

    pub fn values(&self, parent: &At<'_, '_>, schema: &Value) -> Self {
        self.below(parent, Decl::element, schema)
    }

    pub fn items(&self, parent: &'p At<'_, '_>, schema: &Value) -> Self {
        let by_key = parent.get("x-kubernetes-list-type").text() == "map";
        let fleeting = self.fleeting.or((!by_key).then_some(parent.path()));
        Self { fleeting, ..self.below(parent, Decl::element, schema) }
    }

    fn below(&self, parent: &At<'_, '_>, step: impl Fn(&Decl) -> Option<&Decl>, schema: &Value) -> Self {
        let embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true);
        let types = match &self.types {
            Types::Unasked if !has_rules(schema) => Types::Unasked,
            Types::Unasked => Types::of(schema, embedded),
            Types::Known(decl) => match step(decl) {
                Some(below) => Types::Known(below.clone()),
                None => Types::of(schema, embedded),
            },
            Types::Unspeakable => Types::Unspeakable,
        };
        let most = self.most.zip(most_below(parent)).map(|(around, here)| around.saturating_mul(here));
        Self { most, types, fleeting: self.fleeting }
    }
}

fn has_rules(schema: &Value) -> bool {
    schema.get("x-kubernetes-validations").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty())
}

/// How many values a list or map may have for each of its own; `None` if that is not bounded.
fn most_below(schema: &At<'_, '_>) -> Option<u64> {
    let bound = |name: &str| {
        let bound = schema.get(name).value().as_i64()?;
        Some(u64::try_from(bound).unwrap_or(0))
    };
    match schema.get("type").text() {
        "object" if schema.get("additionalProperties").is_set() => bound("maxProperties"),
        "array" => bound("maxItems"),
        _ => Some(1),
    }
}

/// Findings about the rules in a schema.
pub struct Expressions<'s> {
    stored: &'s StoredExpressions,
    /// Whether each expression may cost what it likes, as in a schema that has not changed.
    is_unlimited: bool,
    errors: Errors,
    total: u64,
    /// The dearest expressions, first the dearest.
    dearest: Vec<(String, u64)>,
}

impl<'s> Expressions<'s> {
    pub fn new(stored: &'s StoredExpressions, is_unlimited: bool, errors: &Errors) -> Self {
        Self { stored, is_unlimited, errors: errors.aside(), total: 0, dearest: Vec::new() }
    }

    /// Looks at the rules of a schema, but not at those below.
    pub fn look_at(&mut self, schema: &At<'_, '_>, spot: &Spot<'_>) {
        let rules = schema.get("x-kubernetes-validations");
        if rules.is_empty() || !self.errors.looks_at_expressions() || self.errors.is_full() {
            return;
        }
        let scope = match &spot.types {
            Types::Known(decl) => RuleScope::new(decl).map(|scope| (scope, decl.min_size)),
            _ => None,
        };
        let Some((scope, least)) = scope else {
            return self.errors.internal(
                &rules,
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                 convert structural schema to CEL declarations",
            );
        };
        let times = spot.most.unwrap_or((LARGEST_REQUEST / (least + 1)).unsigned_abs());
        rules.items().for_each(|rule| self.rule(&rule, &scope, times, spot.fleeting));
    }

    fn rule(&mut self, rule: &At<'_, '_>, scope: &RuleScope, times: u64, fleeting: Option<&Path<'_>>) {
        let (expression, message) = (rule.get("rule"), rule.get("messageExpression"));
        let known = provenance(&self.stored.rules, &expression);
        let known_message = provenance(&self.stored.messages, &message);
        let Ok(assessment) = scope.assess(rule.value(), known, known_message) else {
            return self.errors.leave_unchecked();
        };
        let Assessment { rule: outcome, message: of_message, uses_old } = assessment;
        match outcome {
            Ok(cost) => self.cost(&expression, "estimated rule cost", cost.saturating_mul(times)),
            Err(why) => self.errors.invalid(&expression, shown(rule), &why),
        }
        match of_message {
            Some(Ok(cost)) => self.cost(&message, "estimated messageExpression cost", cost),
            Some(Err(why)) => self.errors.invalid(&message, shown(rule), &why),
            None => {}
        }
        let optional = rule.get("optionalOldSelf");
        if let Some(fleeting) = fleeting.filter(|_| uses_old) {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {fleeting}"
            );
            self.errors.invalid(&expression, expression.text(), &why);
        }
        if !uses_old && optional.is_set() {
            self.errors.invalid(&optional, optional.flag(), "may not be set if oldSelf is not used in rule");
        }
    }

    fn cost(&mut self, at: &At<'_, '_>, what: &str, cost: u64) {
        if !self.is_unlimited && cost > EXPRESSION_LIMIT {
            self.errors.forbidden(at, &too_dear(what, cost, EXPRESSION_LIMIT));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= DEAR {
            let place = self.dearest.partition_point(|(_, known)| *known >= cost);
            if place < NAMED {
                self.dearest.insert(place, (at.path().to_string(), cost));
                self.dearest.truncate(NAMED);
            }
        }
    }

    /// Tells what was found of the rules in `schema`.
    pub fn tell(mut self, schema: &At<'_, '_>, errors: &mut Errors) {
        if self.total > SCHEMA_LIMIT {
            for (path, _) in std::mem::take(&mut self.dearest) {
                let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                self.errors.push(crate::causes::Cause::forbidden(path, why));
            }
            let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            self.errors.forbidden(schema, &too_dear(what, self.total, SCHEMA_LIMIT));
        }
        errors.append(self.errors);
    }
}

fn too_dear(what: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = match times {
        _ if times > 100.0 => "more than 100x".to_owned(),
        _ if times < 1.5 => format!("{times:.6}x"),
        _ => format!("{times:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as upstream prints its internal struct.
fn shown(rule: &At<'_, '_>) -> Verbatim {
    let text = |name: &str| gotext::json(&rule.get(name).text().into());
    Verbatim(format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        gotext::json(rule.get("reason").value()),
        text("fieldPath"),
        gotext::json(rule.get("optionalOldSelf").value())
    ))
}
