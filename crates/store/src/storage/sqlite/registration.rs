//! Changes of the tables of registered servers on SQLite, as a part of a batch.

use sqlx::sqlite::SqliteConnection;

use crate::storage::{Amendment, EncodedResource, Registration, RegistryChange};

/// Separates the versions in a list; no apiVersion contains it.
const COMMA: &str = ",";

/// Carries out a batch's change of the registry, within its transaction.
pub async fn change(connection: &mut SqliteConnection, change: &RegistryChange) -> Result<(), sqlx::Error> {
    match change {
        RegistryChange::Put(registration) => put(connection, registration).await,
        RegistryChange::Amend(amendment) => amend(connection, amendment).await,
        RegistryChange::Remove(servers) => {
            for server in servers {
                remove(connection, server).await?;
            }
            Ok(())
        }
    }
}

async fn put(connection: &mut SqliteConnection, registration: &Registration) -> Result<(), sqlx::Error> {
    remove(connection, &registration.server).await?;
    sqlx::query("INSERT INTO servers (id, incarnation, value_format) VALUES (?, ?, ?)")
        .bind(&*registration.server)
        .bind(&*registration.incarnation)
        .bind(registration.format.number())
        .execute(&mut *connection)
        .await?;
    insert(connection, &registration.server, &registration.resources).await
}

async fn amend(connection: &mut SqliteConnection, amendment: &Amendment) -> Result<(), sqlx::Error> {
    let changed = amendment.encoded.iter().map(|encoded| encoded.resource);
    for resource in changed.chain(amendment.dropped.iter().copied()) {
        sqlx::query("DELETE FROM storage_versions WHERE resource = ? AND server = ?")
            .bind(resource.0)
            .bind(&*amendment.server)
            .execute(&mut *connection)
            .await?;
    }
    insert(connection, &amendment.server, &amendment.encoded).await
}

async fn insert(
    connection: &mut SqliteConnection,
    server: &str,
    resources: &[EncodedResource],
) -> Result<(), sqlx::Error> {
    for resource in resources {
        sqlx::query(
            "INSERT INTO storage_versions \
             (resource, server, encoding_version, decodable_versions, served_versions) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(resource.resource.0)
        .bind(server)
        .bind(&*resource.encoding)
        .bind(resource.decodable.join(COMMA))
        .bind(resource.served.join(COMMA))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn remove(connection: &mut SqliteConnection, server: &str) -> Result<(), sqlx::Error> {
    for sql in ["DELETE FROM servers WHERE id = ?", "DELETE FROM storage_versions WHERE server = ?"] {
        sqlx::query(sql).bind(server).execute(&mut *connection).await?;
    }
    Ok(())
}
