//! ComponentStatuses: what the server finds out when somebody asks (`api/src/verbs/component_statuses.rs`).

use crate::kinds::behavior::columns::cell::{NAME, PLAIN, cells, name, text_column};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    warnings: KindWarnings::NONE.of_every_request("v1 ComponentStatus is deprecated in v1.19+"),
    columns: &COLUMNS,
    ..BuiltIn::computed(cluster("componentstatuses", "ComponentStatus").short(&["cs"]))
};

static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Status of the component conditions"),
        text_column("Message", "Message of the component conditions"),
        text_column("Error", "Error of the component conditions"),
    ],
    cells: Some(|object, _| {
        let conditions = object["conditions"].as_array().into_iter().flatten();
        let healthy = conditions.into_iter().find(|condition| condition["type"] == "Healthy");
        let text =
            |member: &str| healthy.and_then(|found| found[member].as_str()).unwrap_or_default().to_owned();
        let status = match text("status").as_str() {
            "True" => "Healthy",
            "False" => "Unhealthy",
            _ => "Unknown",
        };
        cells![name(object), Value::from(status), Value::from(text("message")), Value::from(text("error"))]
    }),
    ..PLAIN
};
