//! Tests of `auth::token_file`.

use std::path::Path;

use rowplane_access::auth::token_file::{ParseError, Problem, Tokens};
use rowplane_values::gotext::csv;

#[test]
fn columns_groups_and_quotes() {
    let text = "t1,alice,1,\"devs,ops\"\r\n\r\nt2,bob,2,devs\n\"t\"\"3\",\"eve, x\",\"\"\n";
    let tokens = Tokens::parse(text).unwrap();
    assert_eq!(tokens.user("t1").unwrap().groups, ["devs", "ops", "system:authenticated"]);
    assert_eq!(tokens.user("t2").unwrap().groups, ["devs", "system:authenticated"]);
    let eve = tokens.user("t\"3").unwrap();
    assert_eq!((eve.name.as_str(), eve.uid.as_str()), ("eve, x", ""));
    assert!(tokens.user("t4").is_none());
}

#[test]
fn errors_name_the_line() {
    let cases = [
        ("a,b,c\nt,alice\n", 2, Problem::Columns(2)),
        ("\n\n,alice,1\n", 3, Problem::EmptyToken),
        ("t,,1\n", 1, Problem::EmptyUser),
        ("t,a,1\nt,b,2\n", 2, Problem::Duplicate),
        ("t,a\"b,1\n", 1, Problem::Csv(csv::Problem::BareQuote)),
        ("t,a,1\nt,\"b,2\n", 3, Problem::Csv(csv::Problem::Quote)),
        ("t,\"b\"x,2\n", 1, Problem::Csv(csv::Problem::Quote)),
    ];
    for (text, line, problem) in cases {
        assert_eq!(Tokens::parse(text).unwrap_err(), ParseError { line, problem }, "{text:?}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Tokens::load(Path::new("/nonexistent/tokens.csv")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read token file /nonexistent/tokens.csv: "));
}
