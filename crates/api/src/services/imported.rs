//! Claims for Services that another API server has written, which keeps them in another form: node ports in one object
//! for all, and addresses so too before Kubernetes 1.33.

use super::Claim;
use super::claims::{address_object, port_object};
use super::wants::held;
use crate::cache::hidden_rows::{self, HiddenRows};
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Draft;
use crate::hidden::NODE_PORTS;
use crate::random::Random;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::transfer::StoredObject;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

/// The rows that claim what a Service holds. Whether there is a row of such a name already is the caller's business.
pub fn claims_of(service: &ObjectMap, random: &Random) -> Vec<StoredObject> {
    let text = |name| fields::text(service, &["metadata", name]);
    let (namespace, name, created) = (text("namespace"), text("name"), text("creationTimestamp"));
    let held = fields::object(service, "spec").map(held).unwrap_or_default();
    let claim = |claim: Claim| {
        let uid = random.uuid().to_string();
        let (resource, version, media, mut object) = match claim {
            Claim::Address(address) => (
                GroupResource::new("networking.k8s.io", "ipaddresses"),
                "networking.k8s.io/v1",
                StorageMediaType::Protobuf,
                address_object(address, namespace, name),
            ),
            Claim::Port(port) => (
                HiddenRows::resource(NODE_PORTS),
                hidden_rows::VERSION,
                StorageMediaType::Json,
                port_object(port, &uid, created, namespace, name),
            ),
        };
        object["metadata"]["uid"] = json!(uid.as_str());
        object["metadata"]["creationTimestamp"] = json!(created);
        let Value::Object(object) = object else { return None };
        Some(StoredObject {
            resource,
            namespace: String::new(),
            name: claim.name(),
            revision: Revision(0),
            uid,
            stored_version: version.to_owned(),
            value: Draft::encode("", &claim.name(), object, media).value().to_vec(),
        })
    };
    held.into_iter().filter_map(claim).collect()
}
