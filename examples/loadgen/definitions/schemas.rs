//! Pieces of schemas as controller-gen writes them, with long descriptions.

use serde_json::{Map, Value, json};

const WORDS: [&str; 40] = [
    "the",
    "resource",
    "controller",
    "of",
    "a",
    "namespace",
    "must",
    "be",
    "reference",
    "object",
    "when",
    "is",
    "not",
    "set",
    "default",
    "value",
    "will",
    "used",
    "by",
    "endpoint",
    "policy",
    "for",
    "each",
    "interval",
    "and",
    "retry",
    "limit",
    "that",
    "selects",
    "traffic",
    "listener",
    "cluster",
    "region",
    "subnet",
    "instance",
    "with",
    "encryption",
    "key",
    "name",
    "storage",
];

/// The same numbers in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (seed as u64).wrapping_mul(0xd129_0d3a_f2b1_8d4f))
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    pub fn sentence(&mut self) -> String {
        let words: Vec<_> = (0..12 + self.below(24)).map(|_| self.word()).collect();
        format!("{}.", words.join(" "))
    }
}

/// The name of a type, from words.
pub fn camel(dice: &mut Dice) -> String {
    let mut name = String::new();
    for _ in 0..2 {
        let word = dice.word();
        name.push_str(&word[..1].to_uppercase());
        name.push_str(&word[1..]);
    }
    name
}

fn described(dice: &mut Dice, mut schema: Value) -> Value {
    schema["description"] = dice.sentence().into();
    schema
}

/// Properties of all sorts, of about this many bytes together.
pub fn fields(dice: &mut Dice, bytes: usize) -> Map<String, Value> {
    let (mut fields, mut written) = (Map::new(), 0);
    while written < bytes {
        let name = format!("{}{}{}", dice.word(), camel(dice), fields.len());
        let schema = field(dice);
        written += name.len() + schema.to_string().len() + 4;
        fields.insert(name, schema);
    }
    fields
}

fn field(dice: &mut Dice) -> Value {
    let schema = match dice.below(10) {
        0 => json!({"type": "integer", "format": "int32", "minimum": 0}),
        1 => json!({"type": "boolean", "default": false}),
        2 => json!({"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}),
        3 => quantity(),
        4 => {
            json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "granular"})
        }
        5 => json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        6 => selector(dice),
        _ => json!({"type": "string", "maxLength": 253}),
    };
    described(dice, schema)
}

pub fn quantity() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": true,
    })
}

pub fn selector(dice: &mut Dice) -> Value {
    let expression = json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": described(dice, json!({"type": "string"})),
            "operator": described(dice, json!({"type": "string"})),
            "values": described(dice, json!({
                "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic",
            })),
        },
    });
    json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": described(dice, json!({
                "type": "array", "items": expression, "x-kubernetes-list-type": "atomic",
            })),
            "matchLabels": described(dice, json!({
                "type": "object", "additionalProperties": {"type": "string"},
            })),
        },
    })
}

/// A status with conditions and fields of about this many bytes; the conditions are the same everywhere.
pub fn status(dice: &mut Dice, bytes: usize) -> Value {
    let mut properties = fields(dice, bytes);
    properties.insert("conditions".to_owned(), conditions());
    json!({"type": "object", "properties": properties})
}

fn conditions() -> Value {
    json!({
        "description": "Conditions of the resource.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "Condition contains details for one aspect of the current state of this API Resource.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "the last time the condition went from one status to another",
                    "type": "string", "format": "date-time",
                },
                "message": {"description": "a human readable message", "type": "string", "maxLength": 32768},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "reason": {
                    "type": "string", "maxLength": 1024, "minLength": 1,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "type": {
                    "type": "string", "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// The schema of a whole object.
pub fn whole(spec: Value, status: Value) -> Value {
    json!({
        "type": "object",
        "description": "An object that the load generator defines.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {
                "description": "APIVersion defines the versioned schema of this representation of an object.",
                "type": "string",
            },
            "kind": {
                "description": "Kind is a string value representing the REST resource this object represents.",
                "type": "string",
            },
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    })
}
