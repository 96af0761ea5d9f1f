//! Lists in the forms that other clients ask for: compressed, as Tables, in protobuf; and watches in protobuf. Each is made
//! into what is said in JSON, and judged as such.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::StatusCode;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};

use super::history::Kind;
use crate::support::rest::{Answer, Broken, Client, Watch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Gzip,
    Table,
    Protobuf,
}

pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Form {
    pub fn pick(random: &mut StdRng) -> Self {
        match random.random_range(0..8) {
            0 => Self::Gzip,
            1 => Self::Table,
            2 => Self::Protobuf,
            _ => Self::Json,
        }
    }
}

/// Requests a list in this form. `path` ends where a further parameter may follow.
pub async fn get(server: &Client, path: &str, kind: Kind, form: Form) -> Result<Answer, Broken> {
    let header = match form {
        Form::Json => return server.get(path).await,
        Form::Gzip => ("accept-encoding", "gzip"),
        Form::Table => ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
        Form::Protobuf => ("accept", PROTOBUF),
    };
    let path = if form == Form::Table { format!("{path}&includeObject=Object") } else { path.to_owned() };
    let (status, body) = server.get_bytes(&path, header).await?;
    let body = match form {
        _ if status != StatusCode::OK => Value::Null,
        Form::Json | Form::Gzip => serde_json::from_slice(&unpacked(&body)).expect("JSON"),
        Form::Table => of_table(serde_json::from_slice(&body).expect("JSON")),
        Form::Protobuf => of_protobuf(&body, kind),
    };
    Ok(Answer { status, body })
}

/// Short answers are not compressed.
fn unpacked(body: &Bytes) -> Vec<u8> {
    let mut text = Vec::new();
    match body.starts_with(&[0x1f, 0x8b]) {
        true => _ = GzDecoder::new(&body[..]).read_to_end(&mut text).expect("gzip"),
        false => text.extend_from_slice(body),
    }
    text
}

fn of_table(mut table: Value) -> Value {
    assert_eq!(table["kind"], "Table");
    let rows = table["rows"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let items: Vec<Value> = rows.into_iter().map(|mut row| row["object"].take()).collect();
    json!({"metadata": table["metadata"], "items": items})
}

/// What a list in protobuf says of metadata, and of the data of ConfigMaps.
fn of_protobuf(body: &[u8], kind: Kind) -> Value {
    let envelope = body.strip_prefix(b"k8s\0").expect("the prefix of protobuf");
    let list = fields(envelope, 2).into_iter().next().expect("a message");
    let metadata = fields(list, 1).into_iter().next().expect("metadata of the list");
    let items: Vec<Value> = fields(list, 2).into_iter().map(|item| object(item, kind)).collect();
    json!({"items": items, "metadata": {"resourceVersion": text(metadata, 2)}})
}

/// Starts a watch, in protobuf or in JSON.
pub async fn watch(server: &Client, path: &str, in_protobuf: bool) -> Result<Watch, Broken> {
    server.watch_in(if in_protobuf { PROTOBUF } else { "application/json" }, path).await
}

/// The next event of a watch in protobuf.
pub async fn next_event(watch: &mut Watch, kind: Kind) -> Result<Option<Value>, Broken> {
    let Some(event) = watch.next_message().await? else { return Ok(None) };
    let raw = fields(&event, 2).into_iter().next().and_then(|object| fields(object, 1).into_iter().next());
    let envelope = raw.and_then(|raw| raw.strip_prefix(b"k8s\0")).expect("the prefix of protobuf");
    let message = fields(envelope, 2).into_iter().next().unwrap_or_default();
    let kind_of_event = text(&event, 1);
    let object = match &*kind_of_event {
        "ERROR" => json!({"code": number(message, 6)}),
        _ => object(message, kind),
    };
    Ok(Some(json!({"type": kind_of_event, "object": object})))
}

fn object(message: &[u8], kind: Kind) -> Value {
    let metadata = fields(message, 1).into_iter().next().expect("metadata");
    let mut object = json!({"metadata": {
        "resourceVersion": text(metadata, 6),
        "labels": map(metadata, 11),
        "annotations": map(metadata, 12),
    }});
    // Bookmarks have none of them.
    for (name, number) in [("name", 1), ("namespace", 3), ("uid", 5)] {
        let text = text(metadata, number);
        if !text.is_empty() {
            object["metadata"][name] = text.into();
        }
    }
    if kind == Kind::ConfigMap {
        object["data"] = map(message, 2);
    }
    object
}

fn text(message: &[u8], number: u64) -> String {
    let found = fields(message, number).into_iter().next_back().unwrap_or_default();
    String::from_utf8(found.to_vec()).expect("text")
}

fn map(message: &[u8], number: u64) -> Value {
    let entries = fields(message, number).into_iter();
    let entries: Map<String, Value> = entries.map(|it| (text(it, 1), text(it, 2).into())).collect();
    entries.into()
}

/// The fields with this number that have a length.
fn fields(message: &[u8], number: u64) -> Vec<&[u8]> {
    all_fields(message, number).0
}

/// The field with this number.
fn number(message: &[u8], number: u64) -> Option<u64> {
    all_fields(message, number).1
}

/// The fields with this number that have a length, and the last one that is a number itself.
fn all_fields(mut message: &[u8], number: u64) -> (Vec<&[u8]>, Option<u64>) {
    let (mut found, mut last) = (Vec::new(), None);
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                let value = varint(&mut message);
                if tag >> 3 == number {
                    last = Some(value);
                }
                continue;
            }
            1 => 8,
            2 => varint(&mut message) as usize,
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (value, rest) = message.split_at(length);
        if tag >> 3 == number {
            found.push(value);
        }
        message = rest;
    }
    (found, last)
}

fn varint(message: &mut &[u8]) -> u64 {
    let end = message.iter().position(|byte| *byte < 0x80).expect("the end of a number") + 1;
    let (number, rest) = message.split_at(end);
    *message = rest;
    number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
}
