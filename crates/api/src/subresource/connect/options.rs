//! The options of connections: from the query of a request to an object, which admission sees, and from that to the query that
//! a kubelet reads.

use url::form_urlencoded::Serializer;

use crate::error::Error;
use crate::gotext;
use crate::options::query::Query;
use crate::schema::names::Gvk;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

/// Reads the options of this kind. `below` is what stands in the path behind a proxy.
pub fn parse(kind: &Gvk, query: &Query, below: &str) -> Result<ObjectMap, Error> {
    let mut options = ObjectMap::new();
    options.insert("kind", kind.kind.as_str().into());
    options.insert("apiVersion", kind.api_version().as_str().into());
    match kind.kind.as_str() {
        "PodAttachOptions" | "PodExecOptions" => {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                if query.flag(name) == Some(true) {
                    options.insert(name, true.into());
                }
            }
            put_text(&mut options, "container", query.text("container"));
            let command: Vec<&str> = query.all("command").collect();
            if kind.kind.as_str() == "PodExecOptions" && !command.is_empty() {
                options.insert("command", json!(command));
            }
        }
        "PodPortForwardOptions" => {
            let ports = ports(query)?;
            if !ports.is_empty() {
                options.insert("ports", json!(ports));
            }
        }
        _ => put_text(&mut options, "path", below),
    }
    Ok(options)
}

fn put_text(options: &mut ObjectMap, name: &'static str, text: &str) {
    if !text.is_empty() {
        options.insert(name, text.into());
    }
}

/// Each parameter may name several ports, with commas between.
fn ports(query: &Query) -> Result<Vec<u64>, Error> {
    let ports = query.all("ports").flat_map(|text| text.split(','));
    let port = |text: &str| match gotext::parse_uint(text) {
        Ok(port) if port <= u64::from(u16::MAX) => Ok(port),
        Ok(_) => Err(format!("strconv.ParseUint: parsing {}: value out of range", gotext::quote(text))),
        Err(why) => Err(why),
    };
    let ports: Result<Vec<u64>, String> = ports.map(port).collect();
    ports.map_err(|why| Error::BadRequest(format!("cannot convert to []int32: {why}")))
}

/// The query of a request for exec, attach or portforward at a kubelet, sorted by name.
pub fn for_kubelet(options: &ObjectMap) -> String {
    let mut query = Serializer::new(String::new());
    let items = |name| fields::items(options, &[name]).iter();
    items("command").filter_map(Value::as_str).for_each(|argument| {
        query.append_pair("command", argument);
    });
    let flags = [("error", "stderr"), ("input", "stdin"), ("output", "stdout")];
    for (told, name) in flags {
        if options.get(name) == Some(&Value::Bool(true)) {
            query.append_pair(told, "1");
        }
    }
    let ports: Vec<String> = items("ports").map(ToString::to_string).collect();
    if !ports.is_empty() {
        query.append_pair("port", &ports.join(","));
    }
    if options.get("tty") == Some(&Value::Bool(true)) {
        query.append_pair("tty", "1");
    }
    query.finish()
}
