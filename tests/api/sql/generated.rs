//! Generated statements, compared with the same question asked of a list.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::{PODS, pod, rows};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    time_and_sql_47_55_conditions_are_those_of_a_list,
}

/// Statements of a store. All stores have the same ones, of the same objects, so their answers are the same, too.
const STATEMENTS: usize = 1_000;

/// A typed column, and where its value is in an object.
struct Typed {
    column: &'static str,
    path: &'static [&'static str],
    values: &'static [&'static str],
}

const COLUMNS: &[Typed] = &[
    Typed { column: "name", path: &["metadata", "name"], values: &["'p1'", "'p12'", "'q'"] },
    Typed { column: "namespace", path: &["metadata", "namespace"], values: &["'t'", "'u'"] },
    Typed { column: "spec_node_name", path: &["spec", "nodeName"], values: &["'n0'", "'n1'", "'n3'", "''"] },
    Typed {
        column: "status_phase",
        path: &["status", "phase"],
        values: &["'Pending'", "'Running'", "'Failed'"],
    },
    Typed { column: "spec_priority", path: &["spec", "priority"], values: &["0", "5", "'5'", "7.5", "-1"] },
    Typed { column: "spec_host_network", path: &["spec", "hostNetwork"], values: &["1", "0"] },
    Typed {
        column: "spec_termination_grace_period_seconds",
        path: &["spec", "terminationGracePeriodSeconds"],
        values: &["30", "1", "60", "'30'"],
    },
    Typed {
        column: "spec_security_context_run_as_user",
        path: &["spec", "securityContext", "runAsUser"],
        values: &["0", "1000", "1001"],
    },
    Typed { column: "status_message", path: &["status", "message"], values: &["'a'", "'5'", "'é\"'", "5"] },
    Typed { column: "status_pod_ip", path: &["status", "podIP"], values: &["'10.0.0.1'", "'10.0.0.2'"] },
];

#[derive(Debug)]
enum Condition {
    Compared(usize, &'static str, &'static str),
    In(usize, Vec<&'static str>),
    IsNull(usize),
    Not(Box<Condition>),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn random(random: &mut StdRng, depth: usize) -> Self {
        let column = random.random_range(0..COLUMNS.len());
        let values = COLUMNS[column].values;
        let value = |random: &mut StdRng| values[random.random_range(0..values.len())];
        let inner = |random: &mut StdRng| Box::new(Self::random(random, depth - 1));
        match random.random_range(0..if depth == 0 { 5 } else { 8 }) {
            0..3 => {
                let operators = ["=", "<>", "<", "<=", ">", ">="];
                Self::Compared(column, operators[random.random_range(0..operators.len())], value(random))
            }
            3 => Self::In(column, (0..random.random_range(0..4)).map(|_| value(random)).collect()),
            4 => Self::IsNull(column),
            5 => Self::Not(inner(random)),
            6 => Self::Both(inner(random), inner(random)),
            _ => Self::Either(inner(random), inner(random)),
        }
    }

    fn sql(&self) -> String {
        let column = |at: &usize| COLUMNS[*at].column;
        match self {
            Self::Compared(at, operator, value) => format!("{} {operator} {value}", column(at)),
            Self::In(at, values) => format!("{} IN ({})", column(at), values.join(", ")),
            Self::IsNull(at) => format!("{} IS NULL", column(at)),
            Self::Not(inner) => format!("NOT ({})", inner.sql()),
            Self::Both(one, other) => format!("({} AND {})", one.sql(), other.sql()),
            Self::Either(one, other) => format!("({} OR {})", one.sql(), other.sql()),
        }
    }

    /// The condition of an object, in the logic of three values.
    fn holds(&self, object: &Value) -> Option<bool> {
        match self {
            Self::Compared(at, operator, value) => {
                let order = compare(&of(object, *at)?, value);
                Some(match *operator {
                    "=" => order.is_eq(),
                    "<>" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Self::In(_, values) if values.is_empty() => Some(false),
            Self::In(at, values) => {
                let found = of(object, *at)?;
                Some(values.iter().any(|value| compare_in(&found, value)))
            }
            Self::IsNull(at) => Some(of(object, *at).is_none()),
            Self::Not(inner) => inner.holds(object).map(|holds| !holds),
            Self::Both(one, other) => match (one.holds(object), other.holds(object)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Either(one, other) => match (one.holds(object), other.holds(object)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

/// The value of a column in an object; `None` for NULL.
fn of(object: &Value, column: usize) -> Option<Value> {
    let value = COLUMNS[column].path.iter().try_fold(object, |value, member| value.get(member))?;
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(json!(u8::from(*value))),
        value => Some(value.clone()),
    }
}

/// A value against a literal: a column of numbers makes a number of a text, a column of texts a text of a number.
fn compare(value: &Value, literal: &str) -> std::cmp::Ordering {
    let text = literal.trim_matches('\'');
    match value {
        Value::Number(number) => {
            let (one, other) = (number.as_f64().expect("a number"), text.parse::<f64>().expect("a number"));
            one.total_cmp(&other)
        }
        value => value.as_str().expect("a text").cmp(text),
    }
}

fn compare_in(value: &Value, literal: &str) -> bool {
    compare(value, literal).is_eq()
}

/// Pods whose fields are there and not, with the same values again and again.
async fn fill(server: &TestServer, random: &mut StdRng) {
    server.namespace("u").await;
    for at in 0..60 {
        let node = (random.random_range(0..3) > 0).then(|| format!("n{}", random.random_range(0..3)));
        let mut pod = pod(&format!("p{at}"), node.as_deref(), "1");
        if random.random_range(0..2) == 0 {
            pod["spec"]["terminationGracePeriodSeconds"] = json!(random.random_range(0..3) * 30);
        }
        if random.random_range(0..2) == 0 {
            pod["spec"]["hostNetwork"] = json!(random.random_range(0..2) == 0);
        }
        if random.random_range(0..2) == 0 {
            pod["spec"]["securityContext"] = json!({"runAsUser": 999 + random.random_range(0..3)});
        }
        let path = if at % 3 == 0 { "/api/v1/namespaces/u/pods" } else { PODS };
        server.post(path, &pod).await.expect(201);
        let mut status = json!({});
        if random.random_range(0..2) == 0 {
            status["message"] = json!(["a", "5", "é\""][random.random_range(0..3)]);
        }
        if random.random_range(0..2) == 0 {
            status["phase"] = json!(["Running", "Failed", "Succeeded"][random.random_range(0..3)]);
        }
        if random.random_range(0..2) == 0 {
            let ip = format!("10.0.0.{}", random.random_range(1..4));
            status["podIP"] = json!(ip);
            status["podIPs"] = json!([{"ip": ip}]);
        }
        server.patch(format!("{path}/p{at}/status"), &json!({"status": status})).await.ok();
    }
}

async fn time_and_sql_47_55_conditions_are_those_of_a_list(setup: Setup) {
    let server = setup.start().await;
    let mut random = StdRng::seed_from_u64(47);
    fill(&server, &mut random).await;
    let list = server.get("/api/v1/pods").await.ok();
    let items = list["items"].as_array().expect("items");
    let key = |item: &Value| json!([item["metadata"]["namespace"], item["metadata"]["name"]]);
    let mut found_rows = 0;
    for at in 0..STATEMENTS {
        let condition = Condition::random(&mut random, 3);
        let sql = condition.sql();
        // Joined to itself, so that indexes answer the same.
        let query = match at % 4 {
            0 => format!(
                "SELECT namespace, name FROM pods JOIN (SELECT uid FROM pods WHERE {sql}) USING (uid) ORDER BY 1, 2"
            ),
            _ => format!("SELECT namespace, name FROM pods WHERE {sql} ORDER BY 1, 2"),
        };
        let mut expected: Vec<Value> =
            items.iter().filter(|item| condition.holds(item) == Some(true)).map(key).collect();
        expected.sort_by_key(Value::to_string);
        let mut found = rows(&server, &query).await;
        found_rows += found.len();
        found.sort_by_key(Value::to_string);
        assert_eq!(found, expected, "{query}");
    }
    assert!(found_rows > STATEMENTS, "{found_rows}");
    // Typed columns are what their paths find.
    for Typed { column, path, .. } in &COLUMNS[2..] {
        let path = path.join(".");
        let query = format!("SELECT count(*) FROM pods WHERE {column} IS NOT (object->>'$.{path}')");
        assert_eq!(rows(&server, &query).await, [json!([0])], "{column}");
    }
    server.stop().await;
}
