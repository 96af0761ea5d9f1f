//! Migrations with obstacles: temporary and permanent ones.

use rowplane::codec::at_rest::StorageMediaType;
use serde_json::Value;

use crate::migration::{MIGRATIONS, OBJECTS, STALE, condition, filled, migrate, migration, until, watch};
use crate::support::server::{Setup, rv};
use crate::{autoscalers_in, on_host};

on_both_databases! {
    storage_version_47_what_passes_delays_it_and_is_told,
    storage_version_47_what_todays_rules_refuse_fails_it,
    storage_version_48_an_unknown_resource_has_a_minute_to_be_served,
}

/// The database refuses one object for a while. (Upstream's assertion uses webhooks, which are not implemented.)
async fn storage_version_47_what_passes_delays_it_and_is_told(mut setup: Setup) {
    filled(&mut setup, 20).await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    let refuse = if setup.is_sqlite() {
        "CREATE TRIGGER refuse BEFORE INSERT ON objects WHEN NEW.name = 'a0007' \
         BEGIN SELECT RAISE(ABORT, 'not now'); END"
    } else {
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON objects FOR EACH ROW WHEN (NEW.name = 'a0007') EXECUTE FUNCTION refuse()"
    };
    setup.database.execute(refuse).await;
    let server = setup.start().await;
    let mut watch = migrate(&server, "delayed").await;
    loop {
        let object = watch.expect("MODIFIED").await;
        assert_eq!(condition(&object, "Failed"), None);
        let Some((_, message)) = condition(&object, "Running") else { continue };
        if let Some((start, error)) = message.split_once("; transient error: ") {
            assert!(
                start.starts_with("The migration is running, ")
                    && start.ends_with("/20 objects not yet migrated")
            );
            assert!(error.contains("not now"), "{error}");
            break;
        }
    }
    let table = if setup.is_sqlite() { "" } else { " ON objects" };
    setup.database.execute(&format!("DROP TRIGGER refuse{table}")).await;
    let (done, _) = until(&mut watch, "Succeeded").await;
    let (_, message) = condition(&done, "Running").expect("it still says so");
    assert!(message.ends_with(" objects verified migrated"), "{message}");
    assert_eq!(setup.database.number(STALE).await, 0);
    assert_eq!(server.get(format!("{OBJECTS}/a0007")).await.status, 200);
    server.stop().await;
}

/// An object is validated as in an update that changes nothing, like the patch that upstream's migrator sends. This one
/// was stored before the rules existed.
async fn storage_version_47_what_todays_rules_refuse_fails_it(mut setup: Setup) {
    setup.storage_media_type = StorageMediaType::Json;
    filled(&mut setup, 3).await;
    let (from, to) = (hex("\"maxReplicas\":3"), hex("\"maxReplicas\":0"));
    replace(&setup, &from, &to, "a0001").await;
    autoscalers_in(&mut setup, "autoscaling/v1");
    let server = setup.start().await;
    let mut watch = migrate(&server, "refused").await;
    let (_, message) = until(&mut watch, "Failed").await;
    let start = "3/3 not yet migrated. migration encountered unhandled error: \
        HorizontalPodAutoscaler.autoscaling \"a0001\" is invalid: spec.maxReplicas: ";
    assert!(message.starts_with(start), "{message}");
    assert_eq!(setup.database.number(STALE).await, 1, "the others were written");
    server.stop().await;
}

/// Instead of waiting for a minute, the test makes the migration older in the database.
async fn storage_version_48_an_unknown_resource_has_a_minute_to_be_served(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    setup.storage_media_type = StorageMediaType::Json;
    let server = setup.start().await;
    let made = server.post(MIGRATIONS, &migration("unknown", "example.com", "things")).await.expect(201);
    let mut young = watch(&server, "unknown", rv(&made)).await;
    until(&mut young, "Running").await;
    let created: &Value = &made["metadata"]["creationTimestamp"];
    let created = created.as_str().expect("a time").to_owned();
    server.stop().await;
    // Until its end, the watch has reported nothing more.
    while let Some(event) = young.next().await {
        assert_eq!(condition(&event["object"], "Failed"), None, "{event}");
    }

    let (from, to) = (hex(&created), hex("2020-01-01T00:00:00Z"));
    replace(&setup, &from, &to, "unknown").await;
    let server = setup.start().await;
    let mut old = watch(&server, "unknown", 0).await;
    let (_, message) = until(&mut old, "Failed").await;
    assert_eq!(message, "resource does not exist in discovery");
    server.stop().await;
}

/// Replaces a text in all stored versions of an object; both texts are hexadecimal.
async fn replace(setup: &Setup, from: &str, to: &str, name: &str) {
    let value = if setup.is_sqlite() {
        format!("CAST(replace(CAST(value AS TEXT), CAST(x'{from}' AS TEXT), CAST(x'{to}' AS TEXT)) AS BLOB)")
    } else {
        format!("decode(replace(encode(value, 'hex'), '{from}', '{to}'), 'hex')")
    };
    setup.database.execute(&format!("UPDATE objects SET value = {value} WHERE name = '{name}'")).await;
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
