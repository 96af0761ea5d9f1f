//! Lists in the forms that other clients ask for: compressed, as Tables, in protobuf. Each is made into what a list in JSON
//! says, and judged as one.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::StatusCode;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};

use super::history::Kind;
use crate::support::rest::{Answer, Broken, Client};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Gzip,
    Table,
    Protobuf,
}

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
        Form::Protobuf => ("accept", "application/vnd.kubernetes.protobuf"),
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
    let items = fields(list, 2).into_iter().map(|item| {
        let metadata = fields(item, 1).into_iter().next().expect("metadata");
        let mut object = json!({"metadata": {
            "name": text(metadata, 1),
            "namespace": text(metadata, 3),
            "uid": text(metadata, 5),
            "resourceVersion": text(metadata, 6),
            "labels": map(metadata, 11),
            "annotations": map(metadata, 12),
        }});
        if kind == Kind::ConfigMap {
            object["data"] = map(item, 2);
        }
        object
    });
    json!({"items": items.collect::<Vec<Value>>(), "metadata": {"resourceVersion": text(metadata, 2)}})
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
fn fields(mut message: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                varint(&mut message);
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
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let end = message.iter().position(|byte| *byte < 0x80).expect("the end of a number") + 1;
    let (number, rest) = message.split_at(end);
    *message = rest;
    number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
}
