//! Tests of the sources: no import runs up, and kinds travel as values. `rowplane-api` has rows of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules from the top down; a module imports only from rows below its own. `ARCHITECTURE.md` shows them
/// (`docs/pictures/layers` draws it).
const ROWS: &[&[&str]] = &[
    &["main", "allocator"],
    &["cli"],
    &["server"],
    &["http"],
    &["controllers"],
    &["audit", "flow_control"],
    &["kinds"],
    &["auth"],
    &["patch"],
    &["cache"],
    &["encryption"],
    &["storage"],
    &["relay"],
    &["webhook"],
    &["traces"],
    &["runtime"],
    &["egress"],
    &["metrics"],
    &["config_file"],
    &["expression"],
    &["codec"],
    &["schema"],
    &["fields"],
    &["grpc"],
    &["protowire"],
    &[
        "answers",
        "causes",
        "failpoints",
        "identity",
        "long_work",
        "pieces",
        "private_files",
        "random",
        "revision",
        "scheduling",
        "server_trust",
        "tasks",
        "user",
        "wall_clock",
        "warnings",
        "watched_file",
    ],
    &["layered"],
];

/// The crates whose modules stand in [`ROWS`].
const IN_ROWS: [&str; 4] = ["src", "crates/access/src", "crates/store/src", "crates/objects/src"];
const API: &str = "crates/api/src";

/// The sources of these crates and of `rowplane-api`, by their paths below `src`.
fn sources() -> Vec<(PathBuf, String)> {
    sources_of(IN_ROWS.into_iter().chain([API]))
}

fn sources_of(roots: impl IntoIterator<Item = &'static str>) -> Vec<(PathBuf, String)> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for root in roots.into_iter().map(|root| package.join(root)) {
        let mut open = vec![root.clone()];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                let entries = std::fs::read_dir(&path).expect("a folder");
                open.extend(entries.map(|entry| entry.expect("an entry").path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                sources.push((path.strip_prefix(&root).expect("below src").to_owned(), text));
            }
        }
    }
    sources
}

/// The source without comments and without tests, which may import everything.
fn production(path: &Path, text: String) -> String {
    let is_test = path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name == "tests" || name == "tests.rs"
    });
    if is_test {
        return String::new();
    }
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The module at the top of a path.
fn module_of(path: &Path) -> String {
    let first = path.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.unwrap_or_default().trim_end_matches(".rs").to_owned()
}

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

#[test]
fn no_import_runs_up() {
    let modules: BTreeSet<String> = sources_of(IN_ROWS).iter().map(|(path, _)| module_of(path)).collect();
    let mut wrong = BTreeSet::new();
    for (path, text) in sources_of(IN_ROWS) {
        let module = module_of(&path);
        if module == "lib" {
            continue;
        }
        let own = row_of(&module).unwrap_or_else(|| panic!("{module} stands in no row"));
        let text = production(&path, text);
        for part in text.split("crate::").skip(1) {
            let used: String = part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if used == module || !modules.contains(&used) {
                continue;
            }
            if row_of(&used).is_none_or(|row| row <= own) {
                wrong.insert((module.clone(), used));
            }
        }
    }
    assert!(wrong.is_empty(), "imports that run up, or sideways in a row: {wrong:?}");
}

/// The parameter lists of all functions in a source.
fn signatures(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| {
        let open = rest.find('(')?;
        let mut depth = 0;
        let end = rest[open..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        })?;
        Some(&rest[..open + end])
    })
}

/// Whether a function has a text parameter with this name.
fn takes_text(signature: &str, name: &str) -> bool {
    ["&str", "String", "&String", "&Text", "Text", "&'static str"].iter().any(|form| {
        let parameter = format!("{name}: {form}");
        signature.match_indices(&parameter).any(|(at, _)| {
            let before = signature[..at].chars().next_back();
            before.is_some_and(|c| matches!(c, '(' | ' '))
        })
    })
}

#[test]
fn no_function_takes_a_version_and_a_kind_as_two_texts() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        // This file makes names from texts.
        if path == Path::new("schema/names.rs") {
            continue;
        }
        let text = production(&path, text);
        for signature in signatures(&text) {
            let version = ["api_version", "version"].iter().any(|name| takes_text(signature, name));
            if version && ["kind", "plural"].iter().any(|name| takes_text(signature, name)) {
                wrong.push(format!("{}: fn {signature})", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "take a Gvk or a Gvr: {wrong:#?}");
}

/// The only places where the store calls the drivers of its databases.
const DRIVEN: [&str; 6] = [
    "storage/sqlite",
    "storage/postgres",
    "storage/shared.rs",
    "storage/history/shared.rs",
    "storage/history/segments/shared.rs",
    "storage/migrations.rs",
];

#[test]
fn no_type_of_a_driver_leaves_the_store() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let shown = path.display().to_string();
        if !DRIVEN.iter().any(|own| shown.starts_with(own)) && production(&path, text).contains("sqlx") {
            wrong.push(shown);
        }
    }
    assert!(wrong.is_empty(), "name the driver: {wrong:#?}");
}

/// The bytes of objects at rest are the store's business; objects are not.
#[test]
fn the_store_knows_no_objects() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if module_of(&path) == "storage" {
            let text = production(&path, text);
            let known = ["codec::object", "schema::builtin", "kinds::"];
            let known = known.iter().filter(|name| text.contains(**name));
            wrong.extend(known.map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "name what values mean: {wrong:#?}");
}

/// Everything static that may change, or is made at its first use, and why no cluster owns it.
const STATICS: &[(&str, &str)] = &[
    ("ANONYMOUS", "a constant"),
    ("ARRIVED", "the request of a task, which names the cache that it is good for"),
    ("BUILT_IN", "a constant: the types of built-in kinds"),
    ("CACHES", "numbers that are given out once"),
    ("CLAIM", "a constant"),
    ("DRAWN", "a thread's source of chance"),
    ("DRIVEN", "the future that a thread has driven last"),
    ("EMPTY", "a constant"),
    ("FUNCTIONS", "a constant: CEL's functions"),
    ("GENERATIONS", "numbers that are given out once"),
    ("HASHER", "a secret of the process, the same for all"),
    ("KNOWN", "a constant: an environment of CEL"),
    ("LAST", "when a thread has looked through its memory"),
    ("LAST_USER", "a thread's last user and what his value is printed as"),
    ("LETTER", "a constant"),
    ("LINE", "a thread's scratch, emptied before each use"),
    ("LOOKED_AT", "a thread's scratch, good for one decision"),
    ("MIGRATIONS", "a constant: the tables of a database"),
    ("NEVER_OWNED", "a constant"),
    ("PATTERNS", "a constant"),
    ("PLANTED", "the bug that tests plant in a process"),
    ("ROOTS", "the CAs of the host"),
    ("ROUND", "what a thread has done since it asked the system for bytes"),
    ("SERVER", "a constant"),
    ("STEPS", "a count of tests"),
    ("SYMBOL", "a constant"),
];

/// The parts of types whose values change, or are made later.
const CHANGING: [&str; 9] =
    ["Atomic", "Cell", "Lock", "Mutex", "Notify", "Semaphore", "ArcSwap", "Sender", "Pool"];

/// The names of statics that change, or that each thread or task has for itself.
fn changing_statics(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("static ").filter_map(|(at, keyword)| {
        let (before, rest) = (&text[..at], &text[at + keyword.len()..]);
        let (name, rest) = rest.split_once(": ")?;
        let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if !is_name || before.ends_with('\'') {
            return None;
        }
        let of_threads = before.rfind("_local! {").is_some_and(|begin| !before[begin..].contains("\n}"));
        let kind = rest.split(['=', ';']).next().unwrap_or_default();
        let changes = of_threads || CHANGING.iter().any(|part| kind.contains(part));
        changes.then_some(name)
    })
}

/// A process holds clusters, which are values: what one of them has must not be found by another one.
#[test]
fn nothing_static_belongs_to_a_cluster() {
    let all = IN_ROWS.into_iter().chain([API, "crates/cel/src", "crates/values/src", "crates/x509/src"]);
    let found: BTreeSet<String> = sources_of(all)
        .into_iter()
        .flat_map(|(path, text)| {
            let text = production(&path, text);
            changing_statics(&text).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let known: BTreeSet<String> = STATICS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "make it a part of `Cluster` or `Commons`, or say whose it is: {new:?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "there are none of these any more: {gone:?}");
}
