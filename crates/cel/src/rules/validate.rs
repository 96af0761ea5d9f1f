//! Evaluation of a schema's rules for an object.

use std::cell::OnceCell;

use rowplane_values::gotext::{display_float, quote};
use rowplane_values::tree::{Map, Value};

use super::correlation::{Correlation, OldItems};
use super::findings::{Findings, Violation, ViolationKind};
use super::scope::RuleProgram;
use super::seen::Seen;
use super::{CALL_LIMIT, Node, OBJECT_BUDGET, Rule, Rules, RulesAt, text};
use crate::program::{Budget, Fault, PATTERNS, Program, Variables};
use crate::value::{Error, Value as CelValue};

/// Messages of expressions that are longer are not used.
const LONGEST_MESSAGE: usize = 5 * 1024;
const OUT_OF_BUDGET: &str = "running out of cost budget, no further validation rules will be run";

/// How many violations are told, and how many warnings.
const TOLD: usize = 256;
/// How often rules are asked about one object: some cost nothing, and an object may have a million values.
pub const MOST_RUNS: u64 = 10_000_000;

/// The path that messages show for the root.
const ROOT: &str = "<nil>";

impl Rules {
    /// Asks all rules about an object, and, if it is an update, about how it changed.
    pub fn validate(&self, object: &Map, old: Option<&Map>) -> Findings {
        let (object, old) = (Seen::Object(object), old.map(Seen::Object));
        let mut walk = Walk::new(String::new(), OBJECT_BUDGET, MOST_RUNS);
        walk.node(&self.root, object, old, Correlation::of(object, old));
        walk.findings
    }
}

impl RulesAt<'_> {
    /// Asks the rules about a value at a path, so many of them at most; what has not changed is no excuse.
    pub fn validate(
        self,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        (budget, runs): (i64, u64),
    ) -> Findings {
        let mut walk = Walk::new(path.to_owned(), budget, runs);
        walk.node(self.0, value.into(), old.map(Seen::from), Correlation::default());
        walk.findings
    }
}

struct Walk {
    findings: Findings,
    path: String,
    /// The bytes that are left for the programs of patterns that are no constants.
    patterns: usize,
}

/// The end of all, since the budget is gone.
struct Spent;

/// Whether a value is what it was, found out when somebody asks.
struct Unchanged<'a> {
    how: Correlation<'a>,
    is: OnceCell<bool>,
}

impl Unchanged<'_> {
    fn get(&self) -> bool {
        *self.is.get_or_init(|| self.how.is_unchanged())
    }
}

/// The variables of a rule.
struct Scope<'a> {
    node: &'a Node,
    object: Seen<'a>,
    old: Option<Seen<'a>>,
    optional: bool,
}

impl<'a> Variables<'a> for Scope<'a> {
    fn get(&self, name: &str) -> Option<Result<CelValue<'a>, Error>> {
        let decl = &self.node.decl;
        match (name, self.old) {
            ("self", _) => Some(self.object.view(decl)),
            ("oldSelf", Some(old)) if self.optional => Some(old.view(decl).map(CelValue::some)),
            ("oldSelf", Some(old)) => Some(old.view(decl)),
            ("oldSelf", None) if self.optional => Some(Ok(CelValue::none())),
            _ => None,
        }
    }
}

impl Walk {
    fn new(path: String, budget: i64, runs: u64) -> Self {
        Self { findings: Findings { budget, runs, ..Findings::default() }, path, patterns: PATTERNS }
    }

    /// False if the budget is gone.
    fn node<'a>(
        &mut self,
        node: &'a Node,
        object: Seen<'a>,
        old: Option<Seen<'a>>,
        how: Correlation<'a>,
    ) -> bool {
        if object.is_null() {
            return true;
        }
        let old = old.filter(|old| !old.is_null());
        if self.rules(node, object, old, how).is_err() {
            self.findings.budget = -1;
            return false;
        }
        node.all_of.iter().all(|part| self.node(part, object, old, how.of_parts()))
            && match object {
                Seen::Other(Value::Array(items)) => self.items(node, items, old, how),
                Seen::Object(members) => self.members(node, members, old, how),
                Seen::Other(_) => true,
            }
    }

    fn items<'a>(
        &mut self,
        node: &'a Node,
        items: &'a [Value],
        old: Option<Seen<'a>>,
        how: Correlation<'a>,
    ) -> bool {
        let Some(inner) = &node.items else { return true };
        let before = OldItems::new(old.map_or(&[], Seen::items), node.list_keys.as_ref());
        items.iter().enumerate().all(|(at, item)| {
            let old = before.get(item);
            self.within(&format!("[{at}]"), |walk| {
                walk.node(inner, item.into(), old.map(Seen::from), how.element(item, old, &inner.decl))
            })
        })
    }

    fn members<'a>(
        &mut self,
        node: &'a Node,
        object: &'a Map,
        old: Option<Seen<'a>>,
        how: Correlation<'a>,
    ) -> bool {
        let old_of = |name: &str| old.and_then(|old| old.member(name)).map(Seen::from);
        if let Some(inner) = &node.additional {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by(|one, other| one.0.cmp(other.0));
            for (name, value) in members {
                let step = format!("[{name}]");
                let go_on = self.within(&step, |walk| {
                    walk.node(inner, value.into(), old_of(name), how.member(name, &inner.decl))
                });
                if !go_on {
                    return false;
                }
            }
        }
        node.properties.iter().all(|(name, inner)| {
            let Some(value) = object.get(name.as_str()) else { return true };
            let step = if self.path.is_empty() { name.to_string() } else { format!(".{name}") };
            self.within(&step, |walk| {
                walk.node(inner, value.into(), old_of(name), how.member(name, &inner.decl))
            })
        })
    }

    fn within(&mut self, step: &str, work: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.path.len();
        self.path.push_str(step);
        let go_on = work(self);
        self.path.truncate(before);
        go_on
    }

    /// Adds what is shown with the type instead of the value.
    fn invalid(&mut self, node: &Node, detail: &str) {
        let field = self.field("");
        let message = format!("Invalid value: {}: {detail}", quote(&node.type_name));
        self.add(Violation { kind: ViolationKind::Invalid, field, message }, false);
    }

    fn field(&self, below: &str) -> String {
        match (self.path.is_empty(), below.is_empty()) {
            (true, true) => ROOT.to_owned(),
            (true, false) => below.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{below}", self.path),
        }
    }

    fn rules<'a>(
        &mut self,
        node: &'a Node,
        object: Seen<'a>,
        old: Option<Seen<'a>>,
        how: Correlation<'a>,
    ) -> Result<(), Spent> {
        if node.rules.is_empty() {
            return Ok(());
        }
        let Some(programs) = node.programs() else {
            self.invalid(
                node,
                "rule compiler initialization error: failed to convert to declType for CEL validation rules",
            );
            return Ok(());
        };
        if self.findings.budget <= 0 || self.findings.runs == 0 {
            self.invalid(node, &format!("validation failed due to {OUT_OF_BUDGET}"));
            return Err(Spent);
        }
        let how = Unchanged { how, is: OnceCell::new() };
        for (rule, program) in node.rules.iter().zip(programs) {
            self.findings.runs = self.findings.runs.saturating_sub(1);
            let scope = Scope { node, object, old, optional: rule.optional_old };
            self.findings.no_stack |= program.no_stack;
            self.rule(rule, program, &scope, &how)?;
        }
        Ok(())
    }

    fn rule<'a>(
        &mut self,
        rule: &'a Rule,
        compiled: &'a RuleProgram,
        scope: &Scope<'a>,
        how: &Unchanged<'a>,
    ) -> Result<(), Spent> {
        let program = match &compiled.rule {
            // An empty rule says nothing.
            _ if rule.text.is_empty() => return Ok(()),
            Ok(program) => program,
            Err(why) => {
                self.invalid(scope.node, &format!("rule compile error: {why}"));
                return Ok(());
            }
        };
        if compiled.uses_old && scope.old.is_none() && !rule.optional_old {
            return Ok(());
        }
        let (outcome, cost) = run(program, scope, &mut self.patterns);
        if cost > self.findings.budget {
            self.invalid(scope.node, &format!("validation failed due to {OUT_OF_BUDGET}"));
            return Err(Spent);
        }
        self.findings.budget -= cost;
        let told = rule.message.as_ref().unwrap_or(&rule.text);
        let fault = match outcome {
            Ok(CelValue::Bool(true)) => return Ok(()),
            Ok(_) => return self.broken(rule, compiled, scope, how),
            Err(fault) => fault,
        };
        let why = fault.message();
        match &fault {
            Fault::Limit => {
                let end = "no further validation rules will be run due to call cost exceeds limit for rule";
                self.invalid(scope.node, &format!("'{why}': {end}: {told}"));
                return Err(Spent);
            }
            _ if why.starts_with("no such overload") => {
                let end =
                    "call arguments did not match a supported operator, function or macro signature for rule";
                self.invalid(scope.node, &format!("'{why}': {end}: {told}"));
            }
            _ => self.invalid(scope.node, &format!("{why} evaluating rule: {told}")),
        }
        Ok(())
    }

    /// Tells of a rule that is not kept.
    fn broken<'a>(
        &mut self,
        rule: &'a Rule,
        compiled: &'a RuleProgram,
        scope: &Scope<'a>,
        how: &Unchanged<'a>,
    ) -> Result<(), Spent> {
        let is_old = !compiled.uses_old && how.get();
        let field = self.field(&rule.field_path);
        let detail = match &compiled.message {
            None => None,
            Some(program) => match self.message(rule, program, scope) {
                Ok(detail) => detail,
                Err(detail) => {
                    let type_name = quote(&scope.node.type_name);
                    let message = format!("Invalid value: {type_name}: {detail}");
                    self.add(Violation { kind: ViolationKind::Invalid, field, message }, is_old);
                    return Err(Spent);
                }
            },
        };
        let own = || rule.message.clone().unwrap_or_else(|| format!("failed rule: {}", rule.text));
        let detail = detail.unwrap_or_else(own);
        let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
        let shown = match &*scope.node.type_name {
            "object" | "array" => String::new(),
            _ => format!(": {}", shown(scope.object)),
        };
        let (kind, message) = match &*rule.reason {
            "FieldValueForbidden" => (ViolationKind::Forbidden, format!("Forbidden{detail}")),
            "FieldValueRequired" => (ViolationKind::Required, format!("Required value{detail}")),
            "FieldValueDuplicate" => (ViolationKind::Duplicate, format!("Duplicate value{shown}")),
            _ => (ViolationKind::Invalid, format!("Invalid value{shown}{detail}")),
        };
        self.add(Violation { kind, field, message }, is_old);
        Ok(())
    }

    fn add(&mut self, violation: Violation, is_old: bool) {
        let Findings { violations, untold, warnings, .. } = &mut self.findings;
        match is_old {
            true if warnings.len() < TOLD => {
                warnings.push(format!("{}: {}", violation.field, violation.message));
            }
            true => {}
            false if violations.len() < TOLD => violations.push(violation),
            false => *untold += 1,
        }
    }

    /// The message that a rule's `messageExpression` makes; `None` if that cannot be used, an error if the budget is gone.
    fn message<'a>(
        &mut self,
        rule: &Rule,
        program: &'a Program,
        scope: &Scope<'a>,
    ) -> Result<Option<String>, String> {
        // Upstream gives messages the old value itself, also where rules get an optional.
        let scope = Scope { optional: false, ..*scope };
        let (outcome, cost) = run(program, &scope, &mut self.patterns);
        if cost > self.findings.budget {
            return Err(format!("messageExpression evaluation failed due to {OUT_OF_BUDGET}"));
        }
        if let Err(Fault::Limit) = outcome {
            let end = "no further validation rules will be run due to call cost exceeds limit for messageExpression";
            return Err(format!("{end}: {}", quote(text(&rule.given, "messageExpression"))));
        }
        self.findings.budget -= cost;
        let Ok(CelValue::String(text)) = outcome else { return Ok(None) };
        let text = text.trim();
        let usable = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
        Ok(usable.then(|| text.to_owned()))
    }
}

fn run<'a>(
    program: &'a Program,
    scope: &Scope<'a>,
    patterns: &mut usize,
) -> (Result<CelValue<'a>, Fault>, i64) {
    let mut budget = Budget { patterns: *patterns, ..Budget::of(CALL_LIMIT) };
    let outcome = program.evaluate(scope, &mut budget);
    *patterns = budget.patterns;
    (outcome, i64::try_from(budget.spent).unwrap_or(i64::MAX))
}

/// A value as Go prints it in errors of fields.
fn shown(value: Seen<'_>) -> String {
    match value {
        Seen::Other(Value::String(text)) => quote(text),
        Seen::Other(Value::Number(number)) if number.is_f64() => {
            display_float(number.as_f64().unwrap_or_default())
        }
        Seen::Other(other) => other.to_string(),
        Seen::Object(members) => Value::Object(members.clone()).to_string(),
    }
}
