//! Changes of the tables of registered servers on PostgreSQL, as a part of a batch.

use sqlx::postgres::PgConnection;

use crate::storage::{Amendment, EncodedResource, Registration, RegistryChange};

/// Separates the versions in a list; no apiVersion contains it.
const COMMA: &str = ",";

/// Carries out a batch's change of the registry, within its transaction.
pub async fn change(connection: &mut PgConnection, change: &RegistryChange) -> Result<(), sqlx::Error> {
    match change {
        RegistryChange::Put(registration) => put(connection, registration).await,
        RegistryChange::Amend(amendment) => amend(connection, amendment).await,
        RegistryChange::Remove(servers) => {
            let servers: Vec<&str> = servers.iter().map(|server| &**server).collect();
            remove(connection, &servers).await
        }
    }
}

async fn put(connection: &mut PgConnection, registration: &Registration) -> Result<(), sqlx::Error> {
    remove(connection, &[&registration.server]).await?;
    sqlx::query("INSERT INTO servers (id, incarnation, value_format) VALUES ($1, $2, $3)")
        .bind(&*registration.server)
        .bind(&*registration.incarnation)
        .bind(registration.format.number())
        .execute(&mut *connection)
        .await?;
    insert(connection, &registration.server, &registration.resources).await
}

async fn amend(connection: &mut PgConnection, amendment: &Amendment) -> Result<(), sqlx::Error> {
    let changed = amendment.encoded.iter().map(|encoded| encoded.resource);
    let resources: Vec<i32> =
        changed.chain(amendment.dropped.iter().copied()).map(|resource| resource.0).collect();
    sqlx::query("DELETE FROM storage_versions WHERE resource = ANY($1) AND server = $2")
        .bind(resources)
        .bind(&*amendment.server)
        .execute(&mut *connection)
        .await?;
    insert(connection, &amendment.server, &amendment.encoded).await
}

async fn insert(
    connection: &mut PgConnection,
    server: &str,
    resources: &[EncodedResource],
) -> Result<(), sqlx::Error> {
    let lists = |pick: fn(&EncodedResource) -> &[Box<str>]| {
        resources.iter().map(|resource| pick(resource).join(COMMA)).collect::<Vec<_>>()
    };
    sqlx::query(
        "INSERT INTO storage_versions (resource, server, encoding_version, decodable_versions, served_versions)
         SELECT v.resource, $1, v.encoding, v.decodable, v.served
         FROM unnest($2::int[], $3::text[], $4::text[], $5::text[]) AS v (resource, encoding, decodable, served)",
    )
    .bind(server)
    .bind(resources.iter().map(|resource| resource.resource.0).collect::<Vec<_>>())
    .bind(resources.iter().map(|resource| &*resource.encoding).collect::<Vec<_>>())
    .bind(lists(|resource| &resource.decodable))
    .bind(lists(|resource| &resource.served))
    .execute(connection)
    .await
    .map(drop)
}

async fn remove(connection: &mut PgConnection, servers: &[&str]) -> Result<(), sqlx::Error> {
    for sql in
        ["DELETE FROM servers WHERE id = ANY($1)", "DELETE FROM storage_versions WHERE server = ANY($1)"]
    {
        sqlx::query(sql).bind(servers).execute(&mut *connection).await?;
    }
    Ok(())
}
