//! `rowplane audit`: what the database knows of who did what, also while servers run.

use bytes::Bytes;
use jiff::Timestamp;

use super::args::AuditQueryArgs;
use super::error::Error;
use super::output::{Output, print};
use super::table::aligned;
use crate::codec::yaml;
use crate::kinds::behavior::columns::age;
use crate::server::datastore::Datastore;
use crate::storage::AuditQuery;
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;
use crate::tree::Value;

const HEAD: [&str; 5] = ["AGE", "USER", "VERB", "OBJECT", "CODE"];

/// Reads the events of a store, and prints them.
pub async fn show(arguments: AuditQueryArgs) -> Result<(), Error> {
    let (datastore, query, output) = arguments.into_query()?;
    let events = events(&datastore, &query).await?;
    let text = match output {
        Output::Json => lines(&events),
        Output::Yaml => documents(&events),
        Output::Table => table(&events, Timestamp::now()),
    };
    print(&text)
}

async fn events(datastore: &Datastore, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
    Ok(match datastore {
        Datastore::Memory => return Err(Error::InMemory),
        Datastore::Sqlite(path) => Sqlite::audit_events(path, query).await?,
        Datastore::Postgres(address) => Postgres::audit_events(address, query).await?,
    })
}

fn lines(events: &[Bytes]) -> String {
    events.iter().map(|event| String::from_utf8_lossy(event).into_owned() + "\n").collect()
}

fn documents(events: &[Bytes]) -> String {
    let events = events.iter().filter_map(|event| serde_json::from_slice::<Value>(event).ok());
    events.map(|event| format!("---\n{}", yaml::write(&event))).collect()
}

/// A line for each event, with the time since it: programs read timestamps from JSON and YAML.
fn table(events: &[Bytes], now: Timestamp) -> String {
    let events = events.iter().filter_map(|event| serde_json::from_slice(event).ok());
    let rows = events.map(|event| row(&event, now));
    aligned(&[HEAD.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>())
}

fn row(event: &Value, now: Timestamp) -> [String; 5] {
    let text = |value: &Value| printable(value.as_str().unwrap_or_default());
    let user = match text(&event["impersonatedUser"]["username"]) {
        other if other.is_empty() => text(&event["user"]["username"]),
        other => format!("{} as {other}", text(&event["user"]["username"])),
    };
    let code = event["responseStatus"]["code"].as_i64().map(|code| code.to_string()).unwrap_or_default();
    [age::since(&event["stageTimestamp"], now), user, text(&event["verb"]), object(event), code]
}

fn object(event: &Value) -> String {
    let object = &event["objectRef"];
    let Some(resource) = object["resource"].as_str() else {
        return printable(event["requestURI"].as_str().unwrap_or_default());
    };
    let mut text = resource.to_owned();
    if let Some(group) = object["apiGroup"].as_str() {
        text.push('.');
        text.push_str(group);
    }
    let is_namespace = text == "namespaces";
    for field in ["namespace", "name", "subresource"] {
        if let Some(part) = object[field].as_str().filter(|_| !(is_namespace && field == "namespace")) {
            text.push('/');
            text.push_str(part);
        }
    }
    printable(&text)
}

/// Names come from clients: what would move the cursor is not shown.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_as_a_table() {
        let events = [
            r#"{"stageTimestamp":"2026-01-02T03:04:05.000000Z","user":{"username":"alice"},"verb":"delete","objectRef":{"resource":"deployments","namespace":"prod","name":"web","apiGroup":"apps"},"responseStatus":{"code":200}}"#,
            r#"{"stageTimestamp":"2026-01-02T03:04:06.000000Z","user":{"username":"admin"},"impersonatedUser":{"username":"b\u001bob"},"verb":"update","objectRef":{"resource":"namespaces","namespace":"n","name":"n","subresource":"finalize"},"responseStatus":{"code":403}}"#,
            r#"{"stageTimestamp":"2026-01-02T03:04:07.000000Z","user":{},"verb":"get","requestURI":"/metrics"}"#,
        ];
        let events = events.map(|event| Bytes::from_static(event.as_bytes()));
        let expected = "\
AGE   USER           VERB    OBJECT                     CODE
5m2s  alice          delete  deployments.apps/prod/web  200
5m1s  admin as b?ob  update  namespaces/n/finalize      403
5m                   get     /metrics
";
        let now = "2026-01-02T03:09:07Z".parse().expect("a time");
        assert_eq!(table(&events, now), expected);
        assert!(lines(&events).starts_with("{\"stageTimestamp\":\"2026-01-02T03:04:05.000000Z\""));
    }
}
