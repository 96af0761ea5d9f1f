//! Warnings about conflicting ports of containers.

use std::collections::HashMap;

use crate::gotext::quote;
use crate::kinds::behavior::warnings::MOST_COMPARED;
use crate::kinds::core::pod_spec::visit;
use crate::kinds::prelude::*;

/// A port and where it occurs.
struct Seen<'v> {
    place: String,
    number: i64,
    protocol: &'v str,
    host: (&'v str, i64),
}

pub fn of_containers(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let mut count = 0;
    visit(spec, &mut |container| count += container.get("ports").len());
    let mut seen: Vec<Seen<'_>> = Vec::with_capacity(if count > 1 { count } else { 0 });
    visit(spec, &mut |container| {
        for port in container.get("ports").items() {
            let (ip, host_port) = (port.get("hostIP").text(), port.get("hostPort").int());
            if !ip.is_empty() && host_port == 0 {
                remarks.on(&port, format_args!("hostIP set without hostPort: {}", shown(&port)));
            }
            // A single port cannot conflict.
            if count > 1 && !remarks.are_enough() {
                let (number, protocol) = (port.get("containerPort").int(), port.get("protocol").text());
                let host = (ip, host_port);
                remarks.compare(seen.len().min(MOST_COMPARED));
                let same = seen
                    .iter()
                    .take(MOST_COMPARED)
                    .filter(|other| (other.number, other.protocol) == (number, protocol));
                for other in same {
                    if let Some(how) = overlap(host, other.host) {
                        remarks.on(&port, format_args!("{how} port definition with {}", other.place));
                    }
                }
                seen.push(Seen { place: port.path().to_string(), number, protocol, host });
            }
        }
    });
    if count > 1 {
        names(spec, remarks);
    }
}

fn overlap(one: (&str, i64), other: (&str, i64)) -> Option<&'static str> {
    if one == other {
        Some("duplicate")
    } else if one.1 == 0 || other.1 == 0 {
        Some("overlapping")
    } else if one.1 == other.1 && one.0.is_empty() != other.0.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn names(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let mut places: HashMap<&str, String> = HashMap::new();
    visit(spec, &mut |container| {
        for port in container.get("ports").items() {
            let name = port.get("name").text();
            match places.get(name) {
                _ if name.is_empty() => {}
                None => _ = places.insert(name, port.path().to_string()),
                Some(first) => {
                    let name = quote(name);
                    remarks.on(
                        &port,
                        format_args!(
                            "duplicate port name {name} with {first}, services and probes that select ports by name \
                             will use {first}"
                        ),
                    );
                }
            }
        }
    });
}

/// A port as Go prints its struct.
fn shown(port: &At<'_, '_>) -> String {
    let empty = ObjectMap::new();
    let port = port.value().as_object().unwrap_or(&empty);
    let text = |name: &str| crate::fields::text(port, &[name]);
    let number = |name: &str| port.get(name).and_then(|value| value.as_i64()).unwrap_or(0);
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text("name"),
        number("hostPort"),
        number("containerPort"),
        text("protocol"),
        text("hostIP")
    )
}
