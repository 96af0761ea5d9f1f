//! Rules over custom objects: what a unit of cost takes, and what twenty rules take on an object of 10 KB.

use std::hint::black_box;
use std::time::Duration;

use rowplane::tree::{Map, Value, json};
use rowplane_cel::decl::{Decl, of_schema};
use rowplane_cel::rules::Rules;
use rowplane_cel::value::{Error, Value as CelValue, view};
use rowplane_cel::{Budget, Environment, Program, Variables, check, program};

use super::timing::{Measured, measure};

/// Lists of 1,000, a map of 100, texts.
fn schema() -> Value {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"name": text, "port": {"type": "integer"},
        "tags": {"type": "array", "items": text}}});
    json!({"type": "object", "properties": {
        "name": text, "long": text, "count": {"type": "integer"},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "names": {"type": "array", "items": text},
        "items": {"type": "array", "items": item},
        "labels": {"type": "object", "additionalProperties": text}}})
}

fn object() -> Value {
    let numbers: Vec<Value> = (0..1_000).map(Value::from).collect();
    let names: Vec<Value> = (0..1_000).map(|number| format!("name-{number}").into()).collect();
    let items = (0..1_000)
        .map(|number| json!({"name": format!("item-{number}"), "port": number, "tags": ["a", "b"]}));
    let labels: Map =
        (0..100).map(|number| (format!("key-{number}"), format!("value-{number}").into())).collect();
    json!({"name": "gateway-main", "long": "lorem ipsum dolor sit amet ".repeat(40), "count": 7, "numbers": numbers,
        "names": names, "items": items.collect::<Vec<Value>>(), "labels": labels})
}

const EXPRESSIONS: [(&str, &str); 14] = [
    ("all numbers", "self.numbers.all(x, x >= 0)"),
    ("all numbers, two conditions", "self.numbers.all(x, x >= 0 && x < 5000)"),
    ("exists a number", "self.numbers.exists(x, x == 999)"),
    ("filter, size", "self.numbers.filter(x, x % 2 == 0).size() == 500"),
    ("map, sum", "self.numbers.map(x, x + 1).sum() > 0"),
    ("all names begin", "self.names.all(n, n.startsWith('name-'))"),
    ("all names match", "self.names.all(n, n.matches('^[a-z]+-[0-9]+$'))"),
    ("names are unlike", "self.names.all(n, n != 'other' && n.size() > 3)"),
    ("all items", "self.items.all(i, has(i.name) && i.port >= 0 && i.name != '')"),
    ("items within items", "self.items.all(i, i.tags.exists(t, t == 'b'))"),
    ("all labels", "self.labels.all(k, self.labels[k] != '')"),
    ("labels, two variables", "self.labels.all(k, v, k != v)"),
    (
        "texts",
        "self.long.contains('amet lorem') && self.long.split(' ').size() > 10 && self.long.lowerAscii() == self.long",
    ),
    (
        "comparisons",
        "self.count > 3 && self.count < 10 && self.name == 'gateway-main' && self.count + 1 == 8",
    ),
];

struct OfObject<'a> {
    object: &'a Value,
    decl: &'a Decl,
}

impl<'a> Variables<'a> for OfObject<'a> {
    fn get(&self, _: &str) -> Option<Result<CelValue<'a>, Error>> {
        Some(view(self.object, self.decl))
    }
}

fn compiled(expression: &str, decl: &Decl) -> Program {
    let of = decl.cel_type().expect("a type");
    let environment = decl.declare(Environment::default().with_variable("self", of));
    let checked = check(expression, &environment).expect("fits");
    program(&checked, &environment).expect("a plan")
}

fn evaluate(program: &Program, object: &Value, decl: &Decl) -> u64 {
    let mut budget = Budget::of(u64::MAX);
    let outcome = program.evaluate(&OfObject { object, decl }, &mut budget);
    assert!(matches!(outcome, Ok(CelValue::Bool(true))), "{outcome:?}");
    budget.spent
}

/// Twenty rules at several places of the object that `custom` measures.
fn rules_of_twenty(mut schema: Value) -> Value {
    let root = json!([{"rule": "self.spec.parts0.size() <= 64"}, {"rule": "self.metadata.name.size() > 0"}]);
    schema["x-kubernetes-validations"] = root;
    let rules = json!([
        {"rule": "self.port > 0 && self.port < 65536"},
        {"rule": "!has(self.hostnames) || self.hostnames.all(h, h.contains('.'))"},
        {"rule": "self.protocol in ['TCP', 'UDP', 'HTTP']", "message": "a protocol"},
    ]);
    for list in 0..6 {
        let items = &mut schema["properties"]["spec"]["properties"][&format!("parts{list}")]["items"];
        items["x-kubernetes-validations"] = rules.clone();
    }
    schema
}

pub fn run(duration: Duration) {
    let (decl, object) = (of_schema(&schema(), false, "selfType"), object());
    println!("Expressions: time of a unit of cost\n");
    let (mut units, mut nanoseconds) = (0, 0.0);
    for (name, expression) in EXPRESSIONS {
        let program = compiled(expression, &decl);
        let cost = evaluate(&program, &object, &decl);
        let measured = measure(duration / 4, || evaluate(black_box(&program), black_box(&object), &decl));
        let took = measured.nanoseconds();
        println!("{name:<32} {cost:>8} units {:>8.1} ns a unit", took / cost as f64);
        units += cost;
        nanoseconds += took;
    }
    println!("{:<32} {units:>8} units {:>8.1} ns a unit\n", "all", nanoseconds / units as f64);
    let schema = rules_of_twenty(super::custom::schema());
    let (rules, object) = (Rules::compile(&schema, true).expect("rules"), super::custom::object());
    assert_eq!(rules.validate(&object, None).violations, []);
    println!("Twenty rules over a custom object of 10 KB\n");
    Measured::print(&[
        ("twenty rules, new", measure(duration, || rules.validate(black_box(&object), None).budget)),
        (
            "twenty rules, unchanged",
            measure(duration, || rules.validate(&object, Some(black_box(&object))).budget),
        ),
        (
            "compiled",
            measure(duration, || {
                let rules = Rules::compile(black_box(&schema), true).expect("rules");
                rules.validate(&object, None).budget
            }),
        ),
    ]);
}
