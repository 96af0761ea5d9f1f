//! Test of this crate's order: a module imports only from modules in rows below its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules from the top down. Those of one row know nothing of each other.
const ROWS: &[&[&str]] = &[
    &["storage_version"],
    &["subresource", "verbs"],
    &["write"],
    &["api"],
    &["concerns"],
    &["admission"],
    &["quota", "rights", "services"],
    &["namespace_contents", "protobuf_messages"],
    &["definitions"],
    &["mutation"],
    &["extensions"],
    &["cluster"],
    &["config", "followers", "hidden", "kubelets", "unreadable"],
    &["catalog", "deletion", "ownership"],
    &["scale"],
    &["decode"],
    &["request"],
    &["conversion"],
    &["resource"],
    &["effects", "options", "service_routes"],
    &["meta"],
    &["error"],
];

/// The modules of what is named at the root.
const AT_ROOT: [(&str, &str); 6] = [
    ("Api", "api"),
    ("Cluster", "cluster"),
    ("Answer", "resource"),
    ("Target", "resource"),
    ("metadata", "meta"),
    ("metadata_mut", "meta"),
];

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut open, mut sources) = (vec![root.clone()], Vec::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            let text = std::fs::read_to_string(&path).expect("a source");
            sources.push((path.strip_prefix(&root).expect("below src").to_owned(), text));
        }
    }
    sources
}

/// The source without comments and tests, which may import everything.
fn production(path: &Path, text: &str) -> String {
    const TESTS: [&str; 3] = ["tests.rs", "compared.rs", "samples.rs"];
    if path.iter().any(|part| part == "tests" || TESTS.iter().any(|name| part == *name)) {
        return String::new();
    }
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The first names of the paths that begin at the crate's root: `crate::a::b`, and `crate::{a, b::c}`.
fn names_at_root(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(first_name(rest));
            continue;
        };
        let mut depth = 0;
        let end = |c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth < 0
        };
        let group = &group[..group.find(end).expect("a closed group")];
        let mut depth = 0;
        let outer = |c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        };
        names.extend(group.split(outer).map(|part| first_name(part.trim())));
    }
    names
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

#[test]
fn no_import_runs_up() {
    let (mut wrong, mut imports) = (BTreeSet::new(), 0);
    for (path, text) in sources() {
        let module = first_name(&path.iter().next().expect("a name").to_string_lossy());
        if matches!(module.as_str(), "lib" | "compared") {
            continue;
        }
        let own = row_of(&module).unwrap_or_else(|| panic!("{module} stands in no row"));
        let text = production(&path, &text);
        // A module at the root would reach its neighbours by `super`.
        assert!(path.iter().count() > 1 || !text.contains("super::"), "{}", path.display());
        for name in names_at_root(&text) {
            let at_root = AT_ROOT.iter().find(|(named, _)| *named == name);
            let used = at_root.map_or(&*name, |(_, module)| module);
            let Some(row) = row_of(used).filter(|_| used != module) else { continue };
            imports += 1;
            if row <= own {
                wrong.insert(format!("{module} -> {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports that run up, or sideways in a row: {wrong:#?}");
    assert!(imports > 500, "{imports}: the sources were not read");
}

#[test]
fn names_of_groups_are_found() {
    let text = "use crate::a::b; use crate::{self as x, c::{d, e}, F}; crate::g::h()";
    let names: Vec<String> = names_at_root(text).into_iter().collect();
    assert_eq!(names, ["F", "a", "c", "g", "self"]);
}
