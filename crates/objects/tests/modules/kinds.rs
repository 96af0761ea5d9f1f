//! Tests that docs/internals/kinds.md says correctly where a kind's behavior is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rowplane_objects::kinds::behavior::definition::Keeping;
use rowplane_objects::kinds::behavior::{BuiltIn, Group};
use rowplane_objects::kinds::{GROUPS, built_in};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The section of docs/internals/kinds.md about adding a kind.
fn guide() -> String {
    let text = fs::read_to_string(root().join("docs/internals/kinds.md")).expect("the page");
    let (_, rest) = text.split_once("## How a kind is added\n").expect("the section");
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The texts between backticks in the guide.
fn names_in(guide: &str) -> Vec<&str> {
    guide.split('`').skip(1).step_by(2).collect()
}

fn kinds() -> impl Iterator<Item = (&'static Group, &'static str, &'static BuiltIn)> {
    GROUPS.iter().flat_map(|group| {
        let versions = group.versions.iter();
        versions.flat_map(move |version| version.kinds.iter().map(move |kind| (*group, version.name, *kind)))
    })
}

/// The module of a group: its first label, except for two groups whose first label says too little.
fn module(group: &str) -> &str {
    match group {
        "" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        other => other.split('.').next().unwrap_or(other),
    }
}

/// The snake case of a kind: `CSIDriver` becomes `csi_driver`.
fn snake_case(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut name = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && letters[at - 1].is_lowercase();
        let begins_word = at > 0 && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (after_small || begins_word) {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// The files in a folder of `kinds` that describe a kind.
fn described_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let described = files.filter(|file| {
        file.is_file() && fs::read_to_string(file).expect("a source file").contains(": BuiltIn =")
    });
    described.collect()
}

#[test]
fn the_guide_names_files_that_exist() {
    let guide = guide();
    let paths: Vec<_> = names_in(&guide)
        .into_iter()
        .filter(|name| (name.starts_with("crates/") || name.starts_with("proto/")) && !name.contains('<'))
        .collect();
    assert!(paths.len() > 5, "{paths:?}");
    for path in paths {
        assert!(root().join(path).exists(), "{path}");
    }
}

#[test]
fn the_guide_names_all_that_a_kind_says() {
    let BuiltIn {
        definition: _,
        strategy: _,
        rules: _,
        warnings: _,
        columns: _,
        fields: _,
        other_version: _,
    } = built_in::any_version("batch", "Job");
    let fields = ["definition", "strategy", "rules", "warnings", "columns", "fields", "other_version"];
    let guide = guide();
    for field in fields {
        assert!(names_in(&guide).contains(&field), "{field}");
    }
}

#[test]
fn a_kind_stands_in_the_file_that_the_guide_names() {
    let folder = root().join("crates/objects/src/kinds");
    let mut expected = BTreeSet::new();
    for (group, _, kind) in kinds() {
        if !matches!(kind.definition.keeping, Keeping::Nothing) {
            let file = format!("{}/{}.rs", module(group.name), snake_case(kind.definition.kind));
            expected.insert(folder.join(file));
        }
    }
    let groups = GROUPS.iter().map(|group| folder.join(module(group.name)));
    let described: BTreeSet<PathBuf> = groups.flat_map(|group| described_in(&group)).collect();
    assert_eq!(described, expected);
}

#[test]
fn a_kind_is_listed_once() {
    let mut served = BTreeSet::new();
    for (group, version, kind) in kinds() {
        assert!(served.insert((group.name, version, kind.definition.kind)), "{}", kind.definition.kind);
        assert!(served.insert((group.name, version, kind.definition.plural)), "{}", kind.definition.plural);
    }
    assert_eq!(served.len(), 2 * built_in::definitions().len());
}
