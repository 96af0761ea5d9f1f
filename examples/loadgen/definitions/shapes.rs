//! CustomResourceDefinitions of 30 KB, of the sorts that are installed in large numbers.

use bytes::Bytes;
use serde_json::{Value, json};

use super::schemas::{self, Dice};

const BYTES: usize = 30_000;
/// Providers put a few resources into each group: 2,000 of them into about 370.
const RESOURCES_OF_A_GROUP: usize = 6;

/// A definition, and the smallest object of it.
pub struct Definition {
    pub name: String,
    pub body: Bytes,
    /// `/apis/<group>/<version>`.
    pub version_path: String,
    /// Where objects are created.
    pub collection: String,
    pub object: Bytes,
}

/// What the sorts of definitions differ in.
struct Sort {
    cluster_wide: bool,
    /// Versions that share the schema; the first one is stored.
    versions: &'static [&'static str],
    schema: Value,
    columns: Value,
    categories: Value,
    /// The spec of the smallest object.
    spec: Value,
}

impl Definition {
    /// The definition of this number; `family` tells those of one run from those of others.
    pub fn new(family: &str, number: usize) -> Self {
        let mut dice = Dice::new(number);
        let sort = match number % 4 {
            0 | 1 => managed(&mut dice),
            2 => operator(&mut dice),
            _ => route(&mut dice),
        };
        let group = format!("service{}.{family}.example.org", number / RESOURCES_OF_A_GROUP);
        let kind = format!("{}{number}", schemas::camel(&mut dice));
        let plural = format!("{}s", kind.to_lowercase());
        let name = format!("{plural}.{group}");
        let body = definition(&name, &group, (&kind, &plural), &sort).to_string().into();
        let version_path = format!("/apis/{group}/{}", sort.versions[0]);
        let collection = match sort.cluster_wide {
            true => format!("{version_path}/{plural}"),
            false => format!("{version_path}/namespaces/default/{plural}"),
        };
        let object = json!({
            "apiVersion": format!("{group}/{}", sort.versions[0]),
            "kind": kind,
            "metadata": {"name": "first"},
            "spec": sort.spec,
        });
        Self { name, body, version_path, collection, object: object.to_string().into() }
    }
}

fn definition(name: &str, group: &str, (kind, plural): (&str, &str), sort: &Sort) -> Value {
    let version = |(at, version): (usize, &&str)| {
        json!({
            "name": version,
            "served": true,
            "storage": at == 0,
            "subresources": {"status": {}},
            "additionalPrinterColumns": sort.columns,
            "schema": {"openAPIV3Schema": sort.schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"controller-gen.kubebuilder.io/version": "v0.18.0"}},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
                "categories": sort.categories,
            },
            "scope": if sort.cluster_wide { "Cluster" } else { "Namespaced" },
            "versions": sort.versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    })
}

/// A managed resource of a provider, as Crossplane's are: the same fields three times over, references, and a rule.
fn managed(dice: &mut Dice) -> Sort {
    let mut provided = schemas::fields(dice, BYTES / 3 - 2_000);
    provided.insert("region".to_owned(), json!({"type": "string", "description": dice.sentence()}));
    let initial = provided.clone();
    let reference = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": dice.sentence()},
            "policy": {
                "type": "object",
                "properties": {
                    "resolution": {"type": "string", "enum": ["Required", "Optional"], "default": "Required"},
                    "resolve": {"type": "string", "enum": ["Always", "IfNotPresent"]},
                },
            },
        },
    });
    provided.insert("subnetIdRef".to_owned(), reference.clone());
    provided.insert("subnetIdSelector".to_owned(), schemas::selector(dice));
    let spec = json!({
        "type": "object",
        "required": ["forProvider"],
        "properties": {
            "deletionPolicy": {"type": "string", "enum": ["Orphan", "Delete"], "default": "Delete"},
            "forProvider": {"type": "object", "properties": provided},
            "initProvider": {"type": "object", "properties": initial},
            "managementPolicies": {
                "type": "array",
                "default": ["*"],
                "items": {"type": "string", "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"]},
            },
            "providerConfigRef": {
                "type": "object", "default": {"name": "default"}, "required": ["name"],
                "properties": reference["properties"],
            },
        },
        "x-kubernetes-validations": [{
            "rule": "!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || \
                     has(self.forProvider.region) || (has(self.initProvider) && has(self.initProvider.region))",
            "message": "spec.forProvider.region is a required parameter",
        }],
    });
    let status = schemas::status(dice, BYTES / 3 - 2_000);
    Sort {
        cluster_wide: true,
        versions: &["v1beta1"],
        schema: schemas::whole(spec, status),
        columns: json!([
            {"name": "SYNCED", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Synced')].status"},
            {"name": "READY", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
            {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]),
        categories: json!(["crossplane", "managed", "aws"]),
        spec: json!({"forProvider": {"region": "eu-west-1"}}),
    }
}

/// What an operator runs: an older version beside the stored one, parts of Pods, quantities, lists that are maps.
fn operator(dice: &mut Dice) -> Sort {
    let mut properties = schemas::fields(dice, BYTES / 2 - 6_000);
    let variables = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": dice.sentence()},
                "value": {"type": "string", "description": dice.sentence()},
            },
        },
    });
    let quantities = json!({"type": "object", "additionalProperties": schemas::quantity()});
    properties.insert("env".to_owned(), variables);
    properties.insert(
        "resources".to_owned(),
        json!({"type": "object", "properties": {"limits": quantities, "requests": quantities}}),
    );
    properties.insert("selector".to_owned(), schemas::selector(dice));
    properties.insert(
        "replicas".to_owned(),
        json!({"type": "integer", "format": "int32", "minimum": 0, "default": 1}),
    );
    properties
        .insert("config".to_owned(), json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let spec = json!({"type": "object", "properties": properties});
    let status = schemas::status(dice, 2_500);
    Sort {
        cluster_wide: false,
        versions: &["v1", "v1alpha1"],
        schema: schemas::whole(spec, status),
        columns: json!([
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]),
        categories: json!(["all"]),
        spec: json!({"replicas": 1}),
    }
}

/// A route as Gateway API's are: two versions of one schema, bounded lists, and rules over them.
fn route(dice: &mut Dice) -> Sort {
    let parent = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "group": {
                "type": "string", "default": "gateway.networking.k8s.io", "maxLength": 253,
                "pattern": r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            },
            "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": dice.sentence()},
            "sectionName": {"type": "string", "minLength": 1, "maxLength": 253, "description": dice.sentence()},
            "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        },
    });
    let backend = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "kind": {"type": "string", "default": "Service", "maxLength": 63},
            "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": dice.sentence()},
            "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
            "weight": {"type": "integer", "format": "int32", "default": 1, "minimum": 0, "maximum": 1000000},
        },
        "x-kubernetes-validations": [{
            "rule": "self.kind == 'Service' ? has(self.port) : true",
            "message": "Must have port for Service reference",
        }],
    });
    let mut properties = schemas::fields(dice, BYTES / 2 - 6_500);
    properties.insert(
        "parentRefs".to_owned(),
        json!({
            "type": "array",
            "maxItems": 32,
            "x-kubernetes-list-type": "atomic",
            "items": parent,
            "x-kubernetes-validations": [{
                "rule": "self.all(p, self.exists_one(q, p.name == q.name && (has(p.sectionName) ? has(q.sectionName) \
                         && p.sectionName == q.sectionName : !has(q.sectionName))))",
                "message": "sectionName must be unique when parentRefs includes 2 or more references to the same parent",
            }],
        }),
    );
    properties.insert(
        "rules".to_owned(),
        json!({
            "type": "array",
            "maxItems": 16,
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "properties": {
                    "backendRefs": {
                        "type": "array", "maxItems": 16, "x-kubernetes-list-type": "atomic", "items": backend,
                    },
                    "name": {"type": "string", "minLength": 1, "maxLength": 253},
                },
            },
        }),
    );
    let spec = json!({"type": "object", "properties": properties});
    let status = schemas::status(dice, 2_000);
    Sort {
        cluster_wide: false,
        versions: &["v1", "v1beta1"],
        schema: schemas::whole(spec, status),
        columns: json!([
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]),
        categories: json!(["gateway-api"]),
        spec: json!({"parentRefs": [{"name": "gateway"}]}),
    }
}
