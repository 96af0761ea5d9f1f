//! The order of `/metrics`: as Go's client library prints them, sorted by the names of the metrics.

/// Sorts the metrics of a text by their names, and drops its empty lines. The series of a metric that is no histogram are sorted, too.
pub fn sorted(text: &str) -> String {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let described = line.strip_prefix("# ").and_then(|rest| rest.split(' ').nth(1));
        match (described, families.last_mut()) {
            (Some(name), Some(last)) if last.name != name => families.push(Family::of(name, line)),
            (Some(name), None) => families.push(Family::of(name, line)),
            (Some(_), Some(last)) => last.described.push(line),
            (None, Some(last)) => last.series.push(line),
            (None, None) => families.push(Family { series: vec![line], ..Family::default() }),
        }
    }
    families.sort_by_key(|family| family.name);
    // The same metric of several clusters is described once.
    families.dedup_by(|next, first| {
        let is_same = next.name == first.name && !next.name.is_empty();
        if is_same {
            first.series.append(&mut next.series);
        }
        is_same
    });
    let mut out = String::with_capacity(text.len());
    for family in &mut families {
        if !family.described.iter().any(|line| line.ends_with(" histogram")) {
            family.series.sort_unstable();
        }
        for line in family.described.iter().chain(&family.series) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Adds the label `cluster` to all series of a text.
pub fn labelled(text: &str, cluster: &str) -> String {
    let cluster = cluster.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.lines() {
        let end = line.find(['{', ' ']).filter(|_| !line.starts_with('#'));
        match end.map(|end| line.split_at(end)) {
            Some((name, rest)) => match rest.strip_prefix('{') {
                Some(labels) => out.extend([name, "{cluster=\"", &cluster, "\",", labels]),
                None => out.extend([name, "{cluster=\"", &cluster, "\"}", rest]),
            },
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// A metric with its series, line by line.
#[derive(Default)]
struct Family<'t> {
    name: &'t str,
    /// The lines of its help and its type.
    described: Vec<&'t str>,
    series: Vec<&'t str>,
}

impl<'t> Family<'t> {
    fn of(name: &'t str, line: &'t str) -> Self {
        Self { name, described: vec![line], series: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{labelled, sorted};

    #[test]
    fn metrics_are_sorted_by_their_names() {
        let text = "# HELP b two words\n# TYPE b counter\nb{x=\"2\"} 1\nb{x=\"1\"} 2\n\n\
                    # TYPE a_seconds histogram\na_seconds_bucket{le=\"5\"} 0\na_seconds_bucket{le=\"10\"} 1\n\n# TYPE a gauge\na 1\n";
        assert_eq!(
            sorted(text),
            "# TYPE a gauge\na 1\n\
             # TYPE a_seconds histogram\na_seconds_bucket{le=\"5\"} 0\na_seconds_bucket{le=\"10\"} 1\n\
             # HELP b two words\n# TYPE b counter\nb{x=\"1\"} 2\nb{x=\"2\"} 1\n"
        );
        assert_eq!(sorted("a 1\n"), "a 1\n");
    }

    #[test]
    fn metrics_of_several_clusters_are_told_apart_and_described_once() {
        let text = "# TYPE b counter\nb{x=\"2 {\"} 1\n# TYPE a gauge\na 1\n";
        let all = [labelled(text, "one"), labelled(text, "tw\"o")].concat();
        let want = [
            "# TYPE a gauge",
            r#"a{cluster="one"} 1"#,
            r#"a{cluster="tw\"o"} 1"#,
            "# TYPE b counter",
            r#"b{cluster="one",x="2 {"} 1"#,
            r#"b{cluster="tw\"o",x="2 {"} 1"#,
        ];
        assert_eq!(sorted(&all).lines().collect::<Vec<_>>(), want);
    }
}
