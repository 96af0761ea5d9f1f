//! What the trigger has recorded of objects beside the load's, which the judges of these read as JSON.

use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use serde_json::Value;

/// A version of an object.
#[derive(Clone, Debug)]
pub struct Row {
    pub revision: u64,
    pub plural: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// `None` for a deletion.
    pub object: Option<Value>,
}

pub type Witnessed = (i64, String, String, String, bool, String, Vec<u8>);

/// Selects the records of these resources. The same on both databases.
pub fn select(plurals: &[&str]) -> String {
    let plurals: Vec<String> = plurals.iter().map(|plural| format!("'{plural}'")).collect();
    format!(
        "SELECT w.revision, r.plural, w.namespace, w.name, w.deleted, w.uid, w.value \
         FROM witness w JOIN resources r ON r.id = w.resource WHERE r.plural IN ({}) ORDER BY w.revision",
        plurals.join(", ")
    )
}

/// A row of [`select`].
pub fn row((revision, plural, namespace, name, deleted, uid, value): Witnessed) -> Row {
    let object = (!deleted).then(|| {
        let stored = Draft::parse(&namespace, &name, value.into()).into_object(Revision(revision as u64));
        let text = rowplane::tree::Value::Object(stored.to_closed_map().expect("a readable row")).to_string();
        serde_json::from_str(&text).expect("JSON")
    });
    Row { revision: revision as u64, plural, namespace, name, uid, object }
}
