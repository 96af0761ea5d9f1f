//! Tests of `options::selector::label`.

use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rowplane_api::options::selector::label::LabelSelector;

fn matches(selector: &str, labels: &[(&str, &'static str)]) -> bool {
    let selector = LabelSelector::parse(selector).unwrap();
    selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
}

#[test]
fn matching() {
    let labels = [("a", "1"), ("b", ""), ("in", "notin")];
    let yes = [
        "",
        "a",
        "!c",
        "a=1",
        "a==1",
        "a!=2",
        "c!=1",
        "a in (1,2)",
        "a notin (2)",
        "c notin (2)",
        "a>0",
        "a<2",
        "b=",
        "b in ()",
        "b in (,x)",
        " a = 1 , b ",
        "in in (notin)",
        "in",
        "a in (1,)",
        "a,b",
    ];
    let no = ["c", "!a", "a!=1", "a in (2)", "a notin (1)", "a>1", "b>0", "c<5", "a=", "a in ()", "c="];
    for selector in yes {
        assert!(matches(selector, &labels), "{selector}");
    }
    for selector in no {
        assert!(!matches(selector, &labels), "{selector}");
    }
}

#[test]
fn texts_of_refusal() {
    let key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let cases = [
        ("-a", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {key}")),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned(),
        ),
        ("k=$", format!("unable to parse requirement: values[0][k]: Invalid value: \"$\": {value}")),
        (
            "k>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
        ),
        ("a)", "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("a=b)", "found ')', expected: ',' or 'end of string'".to_owned()),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        (",a", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned()),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier".to_owned()),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier".to_owned()),
        ("a==(", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
    ];
    for (selector, want) in cases {
        assert_eq!(LabelSelector::parse(selector).unwrap_err(), want, "{selector}");
    }
}

#[test]
fn no_input_panics() {
    let pieces = ["a", "b/c", "=", "==", "!", "!=", "(", ")", ",", " ", "in", "notin", ">", "<", "\0", "é"];
    let mut rng = SmallRng::seed_from_u64(7);
    for _ in 0..20_000 {
        let length = rng.random_range(0..12);
        let text: String = (0..length).map(|_| pieces[rng.random_range(0..pieces.len())]).collect();
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches(|_| Some("1"));
        }
    }
}
