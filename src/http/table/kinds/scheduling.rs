//! Priority classes and disruption budgets.

use super::super::Printer;
use super::super::cell::{
    AGE, NAME, PLAIN, age, boolean_column, cells, flag, integer, integer_column, name, scalar_text, text,
    text_column,
};
use crate::tree::Value;

pub static PRIORITY_CLASS: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Value", "Priority that pods of the class get."),
        boolean_column("Global-Default", "Whether pods without a class get this one."),
        AGE,
        text_column("PreemptionPolicy", "Whether pods of the class may push out others."),
    ],
    cells: |object, now| {
        cells![
            name(object),
            integer(&object["value"]),
            flag(&object["globalDefault"]),
            age(object, now),
            text(&object["preemptionPolicy"]),
        ]
    },
    ..PLAIN
};

pub static POD_DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        text_column("Min Available", "Pods that must stay available."),
        text_column("Max Unavailable", "Pods that may be unavailable."),
        integer_column("Allowed Disruptions", "Pods that may be disrupted now."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![
            name(object),
            bound(&spec["minAvailable"]),
            bound(&spec["maxUnavailable"]),
            integer(&object["status"]["disruptionsAllowed"]),
            age(object, now),
        ]
    },
    ..PLAIN
};

fn bound(value: &Value) -> String {
    scalar_text(value).unwrap_or_else(|| "N/A".to_owned())
}
