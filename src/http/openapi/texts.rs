//! What upstream says of its types and fields; `build.rs` gathers it.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;

/// Descriptions, unpacked for as long as documents are made from them.
pub(super) struct Texts(HashMap<String, HashMap<String, String>>);

impl Texts {
    pub fn load() -> Self {
        let packed = &include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.json.gz"))[..];
        let mut json = Vec::new();
        let read = GzDecoder::new(packed).read_to_end(&mut json);
        read.expect("build.rs writes gzip");
        Self(serde_json::from_slice(&json).expect("build.rs writes descriptions by schema and field"))
    }

    /// Of the type that a schema describes.
    pub fn of_type(&self, schema: &str) -> Option<&str> {
        self.of_field(schema, "")
    }

    pub fn of_field(&self, schema: &str, field: &str) -> Option<&str> {
        self.0.get(schema)?.get(field).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi::names;
    use crate::schema::builtin;
    use crate::schema::registry::Origin;

    #[test]
    fn every_kind_and_its_fields_are_described() {
        let texts = Texts::load();
        for kind in builtin::definitions() {
            let schema = names::schema(Origin::BuiltIn, &kind.group, &kind.version, &kind.kind);
            assert!(texts.of_type(&schema).is_some(), "{schema}");
            for field in ["apiVersion", "kind"] {
                assert!(texts.of_field(&schema, field).is_some(), "{schema} {field}");
            }
        }
        assert!(texts.of_field("io.k8s.api.apps.v1.DeploymentSpec", "strategy").is_some());
    }
}
