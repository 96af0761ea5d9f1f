//! Resource numbers and token keys.

use std::collections::HashSet;

use rowplane::schema::names::GroupResource;

use crate::support::database::{Database, Table};

pub async fn resource_ids_are_stable(database: &Database) {
    let backend = database.open().await;
    let names =
        [GroupResource::new("", "pods"), GroupResource::new("apps", "pods"), GroupResource::new("", "nodes")];
    let ids = backend.resource_ids(&names).await.expect("ids");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3, "{ids:?}");
    let reversed: Vec<_> = names.iter().rev().cloned().collect();
    let again = backend.resource_ids(&reversed).await.expect("ids");
    assert_eq!(again, [ids[2], ids[1], ids[0]]);
    let mixed = [names[1].clone(), GroupResource::new("", "new"), names[1].clone()];
    let mixed = backend.resource_ids(&mixed).await.expect("ids");
    assert_eq!([mixed[0], mixed[2]], [ids[1], ids[1]]);
    assert!(!ids.contains(&mixed[1]));
    assert_eq!(backend.resource_ids(&[]).await.expect("none"), []);
    backend.close().await;
    drop(backend);
    let backend = database.open().await;
    assert_eq!(backend.resource_ids(&names).await.expect("ids"), ids);
}

pub async fn resource_ids_are_made_once_by_many(database: &Database) {
    let backend = database.open().await;
    let names: Vec<_> = (0..20).map(|n| GroupResource::new("g", &format!("r{n}"))).collect();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (backend, mut names) = (backend.clone(), names.clone());
            // In opposite orders, so that rows would be locked in opposite orders.
            if task % 2 == 1 {
                names.reverse();
            }
            tokio::spawn(async move { (task, backend.resource_ids(&names).await.expect("ids")) })
        })
        .collect();
    let mut seen = HashSet::new();
    for task in tasks {
        let (task, mut ids) = task.await.expect("a task");
        if task % 2 == 1 {
            ids.reverse();
        }
        seen.insert(ids);
    }
    assert_eq!(seen.len(), 1, "everybody got the same numbers");
}

pub async fn token_keys_rotate(database: &Database) {
    let backend = database.open().await;
    let first = backend.token_keys(1000, 100).await.expect("keys");
    assert_eq!(first.len(), 1);
    assert!(first[0].secret.len() >= 32 && first[0].created_at == 1000);
    let same = backend.token_keys(1099, 100).await.expect("keys");
    assert_eq!((same.len(), &same[0].secret), (1, &first[0].secret));
    let second = backend.token_keys(1100, 100).await.expect("keys");
    assert_eq!(second.len(), 2);
    assert_eq!((second[1].id, &second[1].secret), (first[0].id, &first[0].secret));
    assert!(second[0].id > first[0].id && second[0].secret != first[0].secret);
    let third = backend.token_keys(1300, 100).await.expect("keys");
    assert_eq!((third.len(), third[1].id), (2, second[0].id), "the first is three lifetimes old");
    assert!(third[0].id > second[0].id);
    assert_eq!(database.rows(Table::TokenKeys).await, 2);

    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let backend = backend.clone();
            tokio::spawn(async move { backend.token_keys(1400, 100).await.expect("keys")[0].secret.clone() })
        })
        .collect();
    let mut secrets = HashSet::new();
    for task in tasks {
        secrets.insert(task.await.expect("a task"));
    }
    assert_eq!(secrets.len(), 1, "servers that rotate at once agree on the key");
}
