//! Tests of `quantity`.

use rowplane_values::quantity::normalize;

/// A text, a tab, and upstream's result on each line; errors start with an exclamation mark. See
/// `proto/generate/golden`.
const GOLDEN: &str = include_str!("../../src/quantity/golden.tsv");

#[test]
fn texts_of_upstream() {
    for line in GOLDEN.lines() {
        let (text, want) = line.split_once('\t').expect("two columns");
        let got = normalize(text).unwrap_or_else(|error| format!("!{error}"));
        assert_eq!(got, want, "{text:?}");
    }
}

#[test]
fn sizes_do_not_matter() {
    let long = "9".repeat(100_000);
    assert_eq!(normalize(&format!("{long}Gi")).expect("parses"), "9223372036854775807");
    assert_eq!(normalize(&format!("0.{long}")).expect("parses"), "1");
    assert_eq!(normalize("1e-2147483648").expect("parses"), "1e-9");
    assert_eq!(normalize("1e2147483647").expect("parses"), "10e2147483646");
}
