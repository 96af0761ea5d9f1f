//! Expressions and objects that ask for endless work: what they may take is counted, and the rest refused.

use rowplane_cel::decl::{Decl, of_schema};
use rowplane_cel::rules::Rules;
use rowplane_cel::value::{Error, Value as CelValue, view};
use rowplane_cel::{Budget, Environment, Program, Variables, check, program};
use rowplane_values::tree::{Map, Value, json};

struct OfObject<'a>(&'a Value, &'a Decl);

impl<'a> Variables<'a> for OfObject<'a> {
    fn get(&self, _: &str) -> Option<Result<CelValue<'a>, Error>> {
        Some(view(self.0, self.1))
    }
}

fn compiled(expression: &str, decl: &Decl) -> Program {
    let of = decl.cel_type().expect("a type");
    let environment = decl.declare(Environment::default().with_variable("self", of));
    let checked = check(expression, &environment).expect("fits");
    program(&checked, &environment).expect("a plan")
}

/// What an expression comes to, what it has spent, and what room it leaves for patterns.
fn evaluated(expression: &str, schema: &Value, object: &Value, budget: Budget<'_>) -> (String, u64, usize) {
    let decl = of_schema(schema, false, "selfType");
    let program = compiled(expression, &decl);
    let mut budget = budget;
    let outcome = match program.evaluate(&OfObject(object, &decl), &mut budget) {
        Ok(value) => format!("{value:?}"),
        Err(fault) => fault.message().to_owned(),
    };
    (outcome, budget.spent, budget.patterns)
}

fn texts() -> Value {
    json!({"type": "object", "properties": {"texts": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}}, "text": {"type": "string"}}})
}

#[test]
fn loops_within_loops_end_with_their_budget() {
    let numbers: Vec<Value> = (0..1000).map(Value::from).collect();
    let object = json!({"numbers": numbers});
    for expression in [
        "self.numbers.all(x, self.numbers.all(y, self.numbers.all(z, x + y + z >= 0)))",
        "self.numbers.exists(x, self.numbers.exists(y, self.numbers.exists(z, x + y + z < 0)))",
        "self.numbers.map(x, self.numbers.map(y, self.numbers.map(z, x + y + z))).size() > 0",
        "self.numbers.filter(x, self.numbers.filter(y, self.numbers.filter(z, z > 1).size() > 1).size() > 1).size() > 0",
        "self.numbers.exists_one(x, self.numbers.exists_one(y, self.numbers.exists_one(z, z > 1)))",
        "self.numbers.all(i, x, self.numbers.all(j, y, self.numbers.all(k, z, i + j + k >= 0)))",
    ] {
        let (outcome, spent, _) = evaluated(expression, &texts(), &object, Budget::of(1_000_000));
        assert_eq!(outcome, "operation cancelled: actual cost limit exceeded", "{expression}");
        assert!((1_000_001..1_000_100).contains(&spent), "{expression}: {spent}");
    }
}

#[test]
fn texts_that_double_are_paid_for_before_they_are_made() {
    let expression = (0..5).fold("self.text".to_owned(), |text, _| format!("({text} + {text})"));
    let object = json!({"text": "x".repeat(1_000_000)});
    let expression = format!("{expression}.size() > 0");
    let (outcome, spent, _) = evaluated(&expression, &texts(), &object, Budget::of(1_000_000));
    assert_eq!(outcome, "operation cancelled: actual cost limit exceeded");
    assert!((1_000_001..1_400_000).contains(&spent), "{spent}");
}

#[test]
fn patterns_of_objects_share_a_room() {
    let patterns: Vec<Value> = (0..1000).map(|number| format!("^[a-z]{{1,900}}{number}$").into()).collect();
    let object = json!({"texts": patterns});
    let budget = Budget { patterns: 1 << 20, ..Budget::of(1_000_000) };
    let (outcome, _, left) = evaluated("self.texts.exists(p, 'x'.matches(p))", &texts(), &object, budget);
    assert!(outcome.starts_with("error parsing regexp: expression too large: "), "{outcome}");
    assert!(left < 1 << 20, "{left}");
    let (outcome, _, left) = evaluated("self.texts[0].matches('^x')", &texts(), &object, Budget::of(100));
    assert_eq!((outcome.as_str(), left), ("Bool(false)", rowplane_cel::Budget::of(1).patterns));
}

/// A schema with such rules at each item of a list.
fn of_items(rules: Value) -> Rules {
    let item = json!({"type": "string", "x-kubernetes-validations": rules});
    let schema = json!({"type": "object", "properties": {"texts": {"type": "array", "items": item}}});
    Rules::compile(&schema, false).expect("rules")
}

fn object_of(texts: Vec<Value>) -> Map {
    let Value::Object(object) = json!({"texts": texts}) else { unreachable!() };
    object
}

#[test]
fn rules_that_cost_nothing_are_counted_too() {
    let rules = of_items(vec![json!({"rule": "true"}); 20].into());
    let found = rules.validate(&object_of(vec!["x".into(); 10_000]), None);
    assert_eq!((found.violations.len(), found.runs), (0, rowplane_cel::rules::MOST_RUNS - 200_000));
    assert_eq!(found.budget, rowplane_cel::rules::OBJECT_BUDGET);
}

#[test]
fn violations_without_number_are_counted_and_not_kept() {
    let rules = of_items(json!([{"rule": "self == 'y'", "message": "m".repeat(2000)}]));
    let found = rules.validate(&object_of(vec!["x".into(); 10_000]), None);
    assert_eq!((found.violations.len(), found.untold), (256, 10_000 - 256));
}

#[test]
fn patterns_of_all_items_of_an_object_share_a_room() {
    let rules = of_items(json!([{"rule": "!'x'.matches(self)"}]));
    let patterns = (0..2000).map(|number| format!("^[a-z]{{1,100}}{number}$").into()).collect();
    let found = rules.validate(&object_of(patterns), None);
    let too_large = "expression too large";
    let told = found.violations.iter().filter(|violation| violation.message.contains(too_large)).count();
    assert!(told > 0 && told + found.untold < 2000, "{told} {}", found.untold);
}

#[test]
fn a_search_that_takes_seconds_is_paid_for_before_it_begins() {
    let text = "a".repeat(3 << 20);
    let object = json!({"text": text, "texts": ["a(a|b){900}c"]});
    for expression in [
        "self.text.matches('a(a|b){900}c')",
        "self.text.matches(self.texts[0])",
        "self.text.find('a(a|b){900}c') == ''",
        "self.text.findAll('a(a|b){900}c', 1).size() == 0",
    ] {
        let (outcome, spent, _) = evaluated(expression, &texts(), &object, Budget::of(10_000_000));
        assert_eq!(outcome, "operation cancelled: actual cost limit exceeded", "{expression}");
        assert!(spent > 40_000_000, "{expression}: {spent}");
    }
    // What a search of that text costs upstream, where it is done in no time.
    let (outcome, spent, _) = evaluated("self.text.matches('^b')", &texts(), &object, Budget::of(10_000_000));
    assert_eq!((outcome.as_str(), spent), ("Bool(false)", 314_575));
}
