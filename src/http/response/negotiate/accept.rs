//! Parses the Accept header like upstream's goautoneg, whose order of preference is not RFC 9110's.

/// One media range with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause<'a> {
    pub kind: &'a str,
    pub subtype: &'a str,
    q: f64,
    params: Vec<(&'a str, &'a str)>,
}

impl Clause<'_> {
    pub fn matches(&self, kind: &str, subtype: &str) -> bool {
        (self.kind == kind || self.kind == "*") && (self.subtype == subtype || self.subtype == "*")
    }

    /// The last value of a parameter; `None` if it is not given.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Upstream's comparison. It is not a consistent order, so the sort below must be upstream's, too.
    fn before(&self, other: &Self) -> bool {
        self.q > other.q
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses in the order in which they are tried.
pub fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut sorted: Vec<Clause<'_>> = Vec::new();
    for clause in header.split(',').filter_map(clause) {
        let mut at = sorted.len();
        while at > 0 && clause.before(&sorted[at - 1]) {
            at -= 1;
        }
        sorted.insert(at, clause);
    }
    sorted
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';').map(blanks_off);
    let range = parts.next()?;
    let (kind, subtype) = match range.split_once('/') {
        Some((kind, subtype)) if !subtype.contains('/') => (blanks_off(kind), blanks_off(subtype)),
        None if range == "*" => ("*", "*"),
        _ => return None,
    };
    let mut clause = Clause { kind, subtype, q: 1.0, params: Vec::new() };
    for part in parts {
        match part.split_once('=') {
            Some((key, value)) if !value.contains('=') => {
                let (key, value) = (blanks_off(key), blanks_off(value));
                if key == "q" {
                    clause.q = value.parse().unwrap_or(0.0);
                } else {
                    clause.params.push((key, value));
                }
            }
            _ => {}
        }
    }
    Some(clause)
}

fn blanks_off(text: &str) -> &str {
    text.trim_matches(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(header: &str) -> Vec<String> {
        clauses(header).iter().map(|c| format!("{}/{}", c.kind, c.subtype)).collect()
    }

    #[test]
    fn order_of_preference() {
        let cases: [(&str, &[&str]); 6] = [
            ("a/b;q=0.1, c/d", &["c/d", "a/b"]),
            ("a/b, c/d;q=0", &["a/b", "c/d"]),
            ("*/*, a/b;q=0.1", &["a/b", "*/*"]),
            ("a/b;q=0.1, */*", &["*/*", "a/b"]),
            ("a/*, a/b", &["a/b", "a/*"]),
            ("a, *, a/b/c, x/y;q=bad", &["x/y", "*/*"]),
        ];
        for (header, want) in cases {
            assert_eq!(order(header), want, "{header}");
        }
    }

    #[test]
    fn parameters() {
        let clauses = clauses("a/b; as=Table ;v=1;v=2;alone;x=1=2");
        assert_eq!(clauses[0].param("as"), Some("Table"));
        assert_eq!(clauses[0].param("v"), Some("2"));
        assert_eq!(clauses[0].param("alone"), None);
        assert_eq!(clauses[0].param("x"), None);
    }

    #[test]
    fn no_input_panics() {
        use rand::{RngExt, SeedableRng};
        let pieces = ["a/b", "*", "/", ";", ",", "=", " ", "q", "0.5", "as", "é", "nan"];
        let mut rng = rand::rngs::SmallRng::seed_from_u64(5);
        for _ in 0..20_000 {
            let length = rng.random_range(0..14);
            let text: String = (0..length).map(|_| pieces[rng.random_range(0..pieces.len())]).collect();
            clauses(&text);
        }
    }
}
