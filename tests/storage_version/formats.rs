//! Rolling upgrades: no format is written that a registered server cannot read yet.

use serde_json::{Value, json};

use crate::on_host;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, names};

on_both_databases! {
    nothing_is_packed_while_a_server_is_there_that_cannot_unpack,
    a_server_that_does_not_register_packs_nothing_that_others_may_read,
}

fn data() -> Value {
    json!({"text": "again and ".repeat(400)})
}

/// Whether the newest version of a ConfigMap takes less space in the database than its text.
async fn is_packed(setup: &Setup, name: &str) -> bool {
    let query = format!(
        "SELECT CAST(length(value) AS bigint) FROM objects WHERE name = '{name}' ORDER BY resource_version DESC LIMIT 1"
    );
    setup.database.number(&query).await < 2000
}

async fn nothing_is_packed_while_a_server_is_there_that_cannot_unpack(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start().await;
    server.create("before", data()).await;
    assert!(is_packed(&setup, "before").await);

    // The registration of a release that knows nothing of formats.
    setup.database.execute("INSERT INTO servers (id, incarnation) VALUES ('old', '1')").await;
    server.create("beside", data()).await;
    server.set("before", json!({"more": "m"})).await;
    let plain = !setup.is_sqlite();
    assert_eq!(is_packed(&setup, "beside").await, !plain, "a SQLite database has one server");
    assert_eq!(is_packed(&setup, "before").await, !plain);

    // A later release reads everything that this one writes.
    setup.database.execute("UPDATE servers SET value_format = 99 WHERE id = 'old'").await;
    server.create("later", data()).await;
    assert!(is_packed(&setup, "later").await);
    setup.database.execute("UPDATE servers SET value_format = 0 WHERE id = 'old'").await;
    server.create("back", data()).await;
    assert_eq!(is_packed(&setup, "back").await, !plain);

    setup.database.execute("DELETE FROM servers WHERE id = 'old'").await;
    server.create("after", data()).await;
    server.set("beside", json!({"more": "m"})).await;
    assert!(is_packed(&setup, "after").await && is_packed(&setup, "beside").await);
    let stored = all(&server).await;
    server.stop().await;
    let server = setup.start().await;
    assert_eq!(all(&server).await, stored, "each is read as it was written");
    server.stop().await;
}

async fn all(server: &TestServer) -> Value {
    let list = server.get(CONFIGMAPS).await.ok();
    assert_eq!(names(&list), ["after", "back", "before", "beside", "later"]);
    list["items"].clone()
}

async fn a_server_that_does_not_register_packs_nothing_that_others_may_read(setup: Setup) {
    let server = setup.start().await;
    server.create("a", data()).await;
    assert_eq!(is_packed(&setup, "a").await, setup.is_sqlite());
    server.stop().await;
}
