//! The scopes of a quota: an object counts only if it is in all of them.

use crate::tree::Value;
use crate::{ObjectMap, fields};

/// One scope, with what it asks of a name.
#[derive(Clone)]
pub struct Requirement<'a> {
    pub name: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

impl<'a> Requirement<'a> {
    /// The scopes of a quota, from both of its lists.
    pub fn all(quota: &'a ObjectMap) -> Vec<Self> {
        let plain = fields::items(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str);
        let plain = plain.map(|name| Self { name, operator: "Exists", values: Vec::new() });
        let selected = fields::items(quota, &["spec", "scopeSelector", "matchExpressions"]).iter();
        plain.chain(selected.filter_map(Value::as_object).map(Self::selected)).collect()
    }

    /// One expression of a selector.
    pub fn selected(expression: &'a ObjectMap) -> Self {
        Self {
            name: fields::text(expression, &["scopeName"]),
            operator: fields::text(expression, &["operator"]),
            values: fields::items(expression, &["values"]).iter().filter_map(Value::as_str).collect(),
        }
    }

    /// The requirement in the form in which Go prints it.
    pub fn printed(&self) -> String {
        format!("{{{} {} [{}]}}", self.name, self.operator, self.values.join(" "))
    }

    /// Whether a name, which is empty if the object has none, is one that the scope asks for.
    pub fn matches(&self, name: &str) -> bool {
        match self.operator {
            "Exists" => !name.is_empty(),
            "DoesNotExist" => name.is_empty(),
            "In" => !name.is_empty() && self.values.contains(&name),
            "NotIn" => name.is_empty() || !self.values.contains(&name),
            _ => false,
        }
    }
}
