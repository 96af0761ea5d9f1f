//! Tests of `options::query`.

use rowplane_api::error::Error;
use rowplane_api::options::query::Query;

#[test]
fn decoding() {
    let query = Query::parse("a=1&a=2&b=x%20y+z&c&=e&bad=%zz&worse=%4&semi;=1&d=%C3%A9&k=a=b");
    assert_eq!(query.get("a"), Some("1"));
    assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(query.text("b"), "x y z");
    assert_eq!(query.get("c"), Some(""));
    assert_eq!(query.text("d"), "é");
    assert_eq!(query.text("k"), "a=b");
    for missing in ["bad", "worse", "semi;", "zz"] {
        assert_eq!(query.get(missing), None);
    }
}

#[test]
fn flags_and_integers() {
    let query = Query::parse("a&b=0&c=FALSE&d=no&e=5&f=abc");
    assert_eq!(
        ["a", "b", "c", "d", "x"].map(|name| query.flag(name)),
        [Some(true), Some(false), Some(false), Some(true), None]
    );
    assert_eq!(query.integer("e"), Ok(Some(5)));
    assert_eq!(query.integer("x"), Ok(None));
    let text = r#"strconv.ParseInt: parsing "abc": invalid syntax"#;
    assert_eq!(query.integer("f"), Err(Error::bad_request(text)));
}

#[test]
fn no_input_panics() {
    use rand::{RngExt, SeedableRng};
    let pieces = ["a", "%", "%4", "%41", "%ff", "&", "=", "+", ";", "é"];
    let mut rng = rand::rngs::SmallRng::seed_from_u64(9);
    for _ in 0..20_000 {
        let length = rng.random_range(0..14);
        let text: String = (0..length).map(|_| pieces[rng.random_range(0..pieces.len())]).collect();
        let query = Query::parse(&text);
        let _ = (query.flag("a"), query.integer("a"));
    }
}
