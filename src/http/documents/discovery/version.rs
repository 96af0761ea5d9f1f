//! `/version`: which Kubernetes API this is, and which program serves it.

use std::env::consts;

use crate::tree::{Value, json};

pub const MAJOR: &str = "1";
pub const MINOR: &str = "37";
/// The oldest minor version whose API this one is compatible with: the one before.
pub const MIN_COMPATIBILITY_MINOR: &str = "36";
/// The value of `goVersion`, where upstream names its version of Go.
pub const PROGRAM: &str = "rust";

/// The version of the API without a word on who serves it.
pub fn release() -> String {
    format!("v{MAJOR}.{MINOR}.0")
}

/// The version that upstream calls emulated, as OpenAPI documents print it.
pub fn emulated() -> String {
    format!("{MAJOR}.{MINOR}")
}

/// `v1.37.0+rowplane-<crate version>`: clients parse the part before `+` as the API's version.
pub fn git_version() -> String {
    format!("{}+rowplane-{}", release(), env!("CARGO_PKG_VERSION"))
}

pub fn document() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": MIN_COMPATIBILITY_MINOR,
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        // Upstream's own value for a build without a date; some clients parse the field.
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": PROGRAM,
        "compiler": "rustc",
        "platform": format!("{}/{}", consts::OS, go_architecture(consts::ARCH)),
    })
}

fn go_architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_as_a_semantic_version() {
        let version = git_version();
        let (core, build) = version.split_once('+').unwrap();
        assert_eq!(core, "v1.37.0");
        assert!(build.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-'), "{build}");
    }

    #[test]
    fn every_field_is_a_string() {
        assert!(document().as_object().unwrap().values().all(Value::is_string));
    }

    #[test]
    fn architectures_are_spelled_the_go_way() {
        assert_eq!(go_architecture("x86_64"), "amd64");
        assert_eq!(go_architecture("riscv64"), "riscv64");
    }
}
