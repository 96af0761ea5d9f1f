//! Columns of EndpointSlices.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, list, text, text_column};
use crate::kinds::behavior::columns::text::shortened;
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("AddressType", "What kind of addresses the slice holds.").at("addressType"),
        text_column("Ports", "Ports that every endpoint of the slice listens on.")
            .of(|object, _| shortened(list(&object["ports"]).iter().map(slice_port), "<unset>").into()),
        text_column("Endpoints", "Addresses of the endpoints.")
            .of(|object, _| shortened(slice_addresses(object), "<unset>").into()),
        AGE,
    ],
    ..PLAIN
};

fn slice_addresses(slice: &Value) -> impl Iterator<Item = &str> {
    list(&slice["endpoints"]).iter().flat_map(|endpoint| list(&endpoint["addresses"])).map(text)
}

fn slice_port(port: &Value) -> String {
    match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}
