//! Changes of the tables of registered servers on PostgreSQL, as the procedure that commits batches is told them.

use serde_json::{Value, json};

use crate::storage::{EncodedResource, RegistryChange};

/// Separates the versions in a list; no apiVersion contains it.
const COMMA: &str = ",";

/// Rows that go: those of the servers `removed`, and of `server` those of the resources `dropped`. Then rows that come: the
/// servers `added`, and of `server` what is `encoded`.
pub fn told(change: &RegistryChange) -> Value {
    match change {
        RegistryChange::Put(registration) => json!({
            "removed": [&*registration.server],
            "added": [{
                "id": &*registration.server,
                "incarnation": &*registration.incarnation,
                "value_format": registration.format.number(),
            }],
            "server": &*registration.server,
            "encoded": encoded(&registration.resources),
        }),
        RegistryChange::Amend(amendment) => {
            let changed = amendment.encoded.iter().map(|encoded| encoded.resource);
            let dropped = changed.chain(amendment.dropped.iter().copied());
            json!({
                "server": &*amendment.server,
                "dropped": dropped.map(|resource| resource.0).collect::<Vec<_>>(),
                "encoded": encoded(&amendment.encoded),
            })
        }
        RegistryChange::Remove(servers) => json!({ "removed": servers }),
    }
}

fn encoded(resources: &[EncodedResource]) -> Vec<Value> {
    let told = |encoded: &EncodedResource| {
        json!({
            "resource": encoded.resource.0,
            "encoding": &*encoded.encoding,
            "decodable": encoded.decodable.join(COMMA),
            "served": encoded.served.join(COMMA),
        })
    };
    resources.iter().map(told).collect()
}
