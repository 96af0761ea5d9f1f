//! Cases of policies with the results of upstream's packages (`tests/upstream/policies`): every line of the file is a
//! case, or an object that cases name by its line.

use std::io::Read as _;

use flate2::read::GzDecoder;

use crate::ObjectMap;
use crate::codec::managed;
use crate::options::strictness::conform;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Value, json};

const CASES: &[u8] = include_bytes!("../../../../../../testdata/policies/cases.jsonl.gz");

pub fn lines() -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(CASES).read_to_string(&mut text).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The object that a case is about, as the server holds it during a write.
pub fn subject(lines: &[Value], case: &Value) -> ObjectMap {
    let line = case["of"].as_u64().expect("a number");
    held(&lines[usize::try_from(line).expect("a line")]["object"])
}

pub fn held(value: &Value) -> ObjectMap {
    let mut object = value.as_object().expect("an object").clone();
    managed::close(&mut object);
    conform(&kind_of(&object), &mut object).expect("a conforming object");
    object
}

pub fn kind_of(object: &ObjectMap) -> Kind {
    let gvk = Gvk::of(object).expect("a kind");
    builtin::types().kind(&gvk).expect("a known kind")
}

/// The request of all cases, as expressions see it.
pub fn request() -> ObjectMap {
    let request = json!({"operation": "CREATE", "dryRun": false, "namespace": "t",
        "userInfo": {"username": "alice", "groups": ["devs"]}});
    request.as_object().expect("an object").clone()
}

pub fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}
