use crate::kinds::behavior::columns::Printer;
use crate::kinds::behavior::columns::cell::{NAME, PLAIN, cells, condition, name, text, text_column};

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Whether the component is healthy."),
        text_column("Message", "What the component says of its health."),
        text_column("Error", "Why the component is not healthy."),
    ],
    cells: |object, _| {
        let Some(healthy) = condition(&object["conditions"], "Healthy") else {
            return cells![name(object), "Unknown", "", ""];
        };
        let status = if healthy["status"] == "True" { "Healthy" } else { "Unhealthy" };
        cells![name(object), status, text(&healthy["message"]), text(&healthy["error"])]
    },
    ..PLAIN
};
