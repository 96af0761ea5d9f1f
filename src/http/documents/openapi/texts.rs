//! Upstream's descriptions of its types and fields, which `build.rs` gathers.

use std::io::Read;

use flate2::read::GzDecoder;

/// The separators that `build.rs` puts between the parts of a record, and behind a record.
const UNIT_END: char = '\x1f';
const RECORD_END: char = '\x1e';

/// Descriptions, unpacked for as long as documents are made from them. Searched as they are, since tables of them would
/// take several times the memory.
pub(super) struct Texts {
    /// Records of schema, field and text, sorted by the first two.
    records: String,
    /// The offset at which each record begins.
    starts: Vec<u32>,
}

impl Texts {
    pub fn load() -> Self {
        let packed = &include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.gz"))[..];
        let mut records = String::new();
        GzDecoder::new(packed).read_to_string(&mut records).expect("build.rs writes text in gzip");
        let ends = records.match_indices(RECORD_END).map(|(end, _)| end as u32 + 1);
        let mut starts: Vec<u32> = std::iter::once(0).chain(ends).collect();
        // Nothing begins behind the last end.
        starts.pop();
        Self { records, starts }
    }

    /// The description of the type to which a schema belongs.
    pub fn of_type(&self, schema: &str) -> Option<&str> {
        self.of_field(schema, "")
    }

    pub fn of_field(&self, schema: &str, field: &str) -> Option<&str> {
        let found = self.starts.binary_search_by(|start| {
            let (found, _) = self.record(*start);
            found.cmp(&(schema, field))
        });
        Some(self.record(self.starts[found.ok()?]).1)
    }

    /// Schema and field, and their text.
    fn record(&self, start: u32) -> ((&str, &str), &str) {
        let rest = &self.records[start as usize..];
        let record = rest.split(RECORD_END).next().unwrap_or_default();
        let mut parts = record.splitn(3, UNIT_END);
        let mut part = || parts.next().unwrap_or_default();
        ((part(), part()), part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::documents::openapi::names;
    use crate::kinds::built_in;

    #[test]
    fn every_kind_and_its_fields_are_described() {
        let texts = Texts::load();
        for kind in built_in::definitions() {
            let schema = names::schema(&kind.kind);
            assert!(texts.of_type(&schema).is_some(), "{schema}");
            for field in ["apiVersion", "kind"] {
                assert!(texts.of_field(&schema, field).is_some(), "{schema} {field}");
            }
        }
        assert!(texts.of_field("io.k8s.api.apps.v1.DeploymentSpec", "strategy").is_some());
    }
}
