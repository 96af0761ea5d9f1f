//! Selectors as authorizers see them: those of a request's query, and those that a review asks about.

use super::field::{self, FieldSelector};
use super::label::{self, LabelSelector};
use crate::auth::authorizer::{Operator, Requirement, Selectors};
use crate::options::query::Query;
use crate::{ObjectMap, fields};

/// The selectors in the query of a list, watch or deletecollection.
#[derive(Clone, Debug, Default)]
pub struct QuerySelectors {
    fields: Option<String>,
    labels: Option<String>,
}

impl QuerySelectors {
    pub fn of(query: &Query) -> Self {
        let text = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        Self { fields: text("fieldSelector"), labels: text("labelSelector") }
    }

    /// Selectors as texts, which may be empty.
    pub fn of_texts(fields: &str, labels: &str) -> Self {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self { fields: text(fields), labels: text(labels) }
    }
}

impl Selectors for QuerySelectors {
    fn fields(&self) -> Vec<Requirement> {
        let selector = self.fields.as_deref().and_then(|fields| FieldSelector::parse(fields).ok());
        selector.map(|selector| of_fields(&selector)).unwrap_or_default()
    }

    fn labels(&self) -> Vec<Requirement> {
        let selector = self.labels.as_deref().and_then(|labels| LabelSelector::parse(labels).ok());
        selector.map(|selector| of_labels(&selector)).unwrap_or_default()
    }
}

/// The selectors of a review. Parts that cannot be understood are left out, which asks for more.
#[derive(Clone, Debug, Default)]
pub struct ReviewSelectors {
    fields: Vec<Requirement>,
    labels: Vec<Requirement>,
    /// The errors about parts that were left out, in the words of upstream's `evaluationError`.
    pub left_out: Vec<String>,
}

impl Selectors for ReviewSelectors {
    fn fields(&self) -> Vec<Requirement> {
        self.fields.clone()
    }

    fn labels(&self) -> Vec<Requirement> {
        self.labels.clone()
    }
}

impl ReviewSelectors {
    /// The selectors in the `resourceAttributes` of a review.
    pub fn of(attributes: &ObjectMap) -> Self {
        let mut selectors = Self::default();
        let parse = |raw: &str| FieldSelector::parse(raw).map(|selector| of_fields(&selector)).ok();
        selectors.fields = selectors.read(attributes, "fieldSelector", parse, field_requirement);
        let parse = |raw: &str| LabelSelector::parse(raw).map(|selector| of_labels(&selector)).ok();
        selectors.labels = selectors.read(attributes, "labelSelector", parse, label_requirement);
        selectors
    }

    fn read(
        &mut self,
        attributes: &ObjectMap,
        name: &str,
        parse: impl Fn(&str) -> Option<Vec<Requirement>>,
        requirement: fn(&ObjectMap) -> Option<Requirement>,
    ) -> Vec<Requirement> {
        let raw = fields::text(attributes, &[name, "rawSelector"]);
        let asked = fields::items(attributes, &[name, "requirements"]);
        let (found, complete) = if asked.is_empty() {
            let parsed = parse(raw);
            let complete = parsed.is_some();
            (parsed.unwrap_or_default(), complete)
        } else {
            let read = asked.iter().map(|one| one.as_object().and_then(requirement));
            let found: Vec<Requirement> = read.flatten().collect();
            let complete = found.len() == asked.len();
            (found, complete)
        };
        if !complete {
            let ignored = if found.is_empty() { "ignored" } else { "partially ignored" };
            self.left_out.push(format!("spec.resourceAttributes.{name} {ignored} due to parse error"));
        }
        found
    }
}

fn of_fields(selector: &FieldSelector) -> Vec<Requirement> {
    let requirement = |term: &field::Term| Requirement {
        key: term.field.clone(),
        operator: match term.operator {
            field::Operator::Equals => Operator::In,
            field::Operator::NotEquals => Operator::NotIn,
        },
        values: vec![term.value.clone()],
    };
    selector.terms().iter().map(requirement).collect()
}

fn of_labels(selector: &LabelSelector) -> Vec<Requirement> {
    let requirement = |one: &label::Requirement| {
        let (operator, values) = match &one.operator {
            label::Operator::In(values) => (Operator::In, values.clone()),
            label::Operator::NotIn(values) => (Operator::NotIn, values.clone()),
            label::Operator::Exists => (Operator::Exists, Vec::new()),
            label::Operator::DoesNotExist => (Operator::DoesNotExist, Vec::new()),
            // Authorizers have no words for these.
            label::Operator::GreaterThan(_) | label::Operator::LessThan(_) => return None,
        };
        Some(Requirement { key: one.key.clone(), operator, values })
    };
    selector.requirements().iter().filter_map(requirement).collect()
}

fn field_requirement(asked: &ObjectMap) -> Option<Requirement> {
    let requirement = any_requirement(asked)?;
    let is_single = requirement.values.len() == 1;
    (is_single && matches!(requirement.operator, Operator::In | Operator::NotIn)).then_some(requirement)
}

fn label_requirement(asked: &ObjectMap) -> Option<Requirement> {
    let requirement = any_requirement(asked)?;
    let fits = match requirement.operator {
        Operator::In | Operator::NotIn => !requirement.values.is_empty(),
        Operator::Exists | Operator::DoesNotExist => requirement.values.is_empty(),
    };
    fits.then_some(requirement)
}

fn any_requirement(asked: &ObjectMap) -> Option<Requirement> {
    let operator = match fields::text(asked, &["operator"]) {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    let values = fields::items(asked, &["values"]).iter();
    let values = values.map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
    Some(Requirement { key: fields::text(asked, &["key"]).to_owned(), operator, values })
}
