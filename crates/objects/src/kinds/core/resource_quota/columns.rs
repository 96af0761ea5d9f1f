//! Columns of ResourceQuotas.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, scalar_text, text_column};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::prelude::*;
use crate::tree::Text;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Request", "Use and bound of what is counted or requested.")
            .of(|object, _| quota(&object["status"], Counted::Requests).into()),
        text_column("Limit", "Use and bound of the limits of containers.")
            .of(|object, _| quota(&object["status"], Counted::Limits).into()),
        AGE,
    ],
    ..PLAIN
};

#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Requests,
    Limits,
}

impl Counted {
    fn of(resource: &str) -> Self {
        if resource.starts_with("limits.") { Counted::Limits } else { Counted::Requests }
    }
}

/// The text of a cell: `pods: 2/10, services: 0/5`.
fn quota(status: &Value, counted: Counted) -> String {
    let hard = status["hard"].as_object().into_iter().flatten();
    let mut bounds: Vec<(&Text, &Value)> =
        hard.filter(|(resource, _)| Counted::of(resource) == counted).collect();
    bounds.sort_by_key(|(resource, _)| *resource);
    let quantity = |value: &Value| scalar_text(value).unwrap_or_else(|| "0".to_owned());
    let bound = |(resource, hard): (&Text, &Value)| {
        format!("{resource}: {}/{}", quantity(&status["used"][resource]), quantity(hard))
    };
    join(bounds.into_iter().map(bound), ", ")
}
