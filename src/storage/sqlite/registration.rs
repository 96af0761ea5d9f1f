//! Changes of the tables of registered servers on SQLite, as a part of a batch.

use sqlx::sqlite::SqliteConnection;

use crate::storage::{Registration, RegistryChange};

/// Separates the versions in a list; no apiVersion contains it.
const COMMA: &str = ",";

/// Carries out a batch's change of the registry, within its transaction.
pub async fn change(connection: &mut SqliteConnection, change: &RegistryChange) -> Result<(), sqlx::Error> {
    match change {
        RegistryChange::Put(registration) => put(connection, registration).await,
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
    for resource in &registration.resources {
        sqlx::query(
            "INSERT INTO storage_versions \
             (resource, server, encoding_version, decodable_versions, served_versions) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(resource.resource.0)
        .bind(&*registration.server)
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
