//! Selectors in objects: `matchLabels` and `matchExpressions` (apimachinery `LabelSelectorAsSelector`).

use super::{LabelSelector, Operator, Requirement};
use crate::tree::Value;
use crate::{ObjectMap, fields};

impl LabelSelector {
    /// The selector of a `LabelSelector` object; `None` if it is absent or malformed, and then selects nothing.
    pub fn of_object(selector: Option<&Value>) -> Option<Self> {
        let selector = selector?.as_object()?;
        let pairs = fields::object(selector, "matchLabels").into_iter().flatten();
        let equal = pairs.map(|(key, value)| {
            let operator = Operator::In(vec![value.as_str()?.to_owned()]);
            Some(Requirement { key: key.to_string(), operator })
        });
        let expressions = fields::items(selector, &["matchExpressions"]).iter();
        let requirements = equal.chain(expressions.map(|item| requirement(item.as_object()?)));
        requirements.collect::<Option<_>>().map(|requirements| Self { requirements })
    }
}

fn requirement(expression: &ObjectMap) -> Option<Requirement> {
    let values = fields::items(expression, &["values"]).iter().map(|value| value.as_str().map(str::to_owned));
    let mut values: Vec<String> = values.collect::<Option<_>>()?;
    values.sort_unstable();
    values.dedup();
    let operator = match (fields::text(expression, &["operator"]), values.is_empty()) {
        ("In", false) => Operator::In(values),
        ("NotIn", false) => Operator::NotIn(values),
        ("Exists", true) => Operator::Exists,
        ("DoesNotExist", true) => Operator::DoesNotExist,
        _ => return None,
    };
    Some(Requirement { key: fields::text(expression, &["key"]).to_owned(), operator })
}
