//! Another encoding of stored objects' bytes makes them stale, too.

use rowplane::codec::at_rest::StorageMediaType;
use serde_json::json;

use crate::migration::{MIGRATIONS, STALE, cleaned, filled, migrate, migration, objects, until, watch};
use crate::on_host;
use crate::support::server::{Setup, rv};

on_both_databases! {
    another_media_type_is_another_encoding,
    storage_version_42_a_second_migration_leaves_a_secret_alone,
}

/// The version stays and the bytes change, and back again.
async fn another_media_type_is_another_encoding(mut setup: Setup) {
    setup.storage_media_type = StorageMediaType::Json;
    filled(&mut setup, 30).await;
    let start =
        if setup.is_sqlite() { "hex(substr(o.value, 1, 4))" } else { "encode(substr(o.value, 1, 4), 'hex')" };
    let in_protobuf = format!("{STALE} AND lower({start}) = '6b387300'");
    for (name, media, count) in
        [("there", StorageMediaType::Protobuf, 30), ("back", StorageMediaType::Json, 0)]
    {
        assert_eq!(setup.database.number(&in_protobuf).await, 30 - count);
        setup.storage_media_type = media;
        let server = setup.start().await;
        let (before, _) = objects(&server).await;
        let mut watch = migrate(&server, name).await;
        until(&mut watch, "Succeeded").await;
        assert_eq!(setup.database.number(&in_protobuf).await, count);
        assert_eq!(objects(&server).await.0, before);
        server.stop().await;
    }
}

/// Upstream's assertion is about a change of the encryption key, which does not exist here; a changed media type makes
/// the row stale instead.
async fn storage_version_42_a_second_migration_leaves_a_secret_alone(mut setup: Setup) {
    let secrets = "/api/v1/namespaces/t/secrets";
    setup.storage_media_type = StorageMediaType::Json;
    on_host(&mut setup, "rowplane-0");
    let server = setup.start().await;
    let body = json!({"metadata": {"name": "a"}, "stringData": {"key": "value"}});
    let made = server.post(secrets, &body).await.expect(201);
    server.stop().await;

    setup.storage_media_type = StorageMediaType::Protobuf;
    let server = setup.start().await;
    let mut revisions = vec![rv(&made)];
    for name in ["first", "second"] {
        let asked = server.post(MIGRATIONS, &migration(name, "", "secrets")).await.expect(201);
        let mut watch = watch(&server, name, rv(&asked)).await;
        until(&mut watch, "Succeeded").await;
        cleaned(&mut watch).await;
        let now = server.get(format!("{secrets}/a")).await.ok();
        assert_eq!((&now["data"], &now["metadata"]["uid"]), (&made["data"], &made["metadata"]["uid"]));
        revisions.push(rv(&now));
    }
    assert!(revisions[0] < revisions[1] && revisions[1] == revisions[2], "{revisions:?}");
    server.stop().await;
}
