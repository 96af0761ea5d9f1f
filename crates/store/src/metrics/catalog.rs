//! All metrics with what they say: the texts of `/metrics`.

use std::fmt::Write as _;

/// The names of all metrics with their help, one per line. Upstream's metrics have upstream's text, where that is true here.
const HELP: &str = include_str!("help.txt");
/// All metrics with their help.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    HELP.lines().filter_map(|line| line.split_once(' '))
}

/// The help of a metric.
pub(super) fn help(name: &str) -> &'static str {
    let known = all().find(|(known, _)| *known == name);
    debug_assert!(known.is_some(), "{name} has no help");
    known.map_or("", |(_, help)| help)
}

/// Adds the lines before the series of a metric.
pub(super) fn head(out: &mut String, name: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", help(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each metric has a line of help, and docs/metrics.md names each that only rowplane has.
    #[test]
    fn metrics_are_described() {
        let names: Vec<&str> = all().map(|(name, _)| name).collect();
        assert!(names.is_sorted() && all().all(|(_, help)| !help.is_empty()));
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md"));
        let page = page.expect("a page");
        let own: Vec<&&str> = names.iter().filter(|name| name.starts_with("rowplane_")).collect();
        assert!(own.len() > 8);
        for name in own {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
