//! Namespaces of the load generator, which it fills and empties.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::client::{Connection, JSON, Protocol};
use crate::objects::Maker;
use crate::target::Target;
use crate::{Context, Result};

const FILLERS: usize = 128;
const FILLER_CONNECTIONS: usize = 8;
/// How many objects one `deletecollection` deletes.
const DELETE_PAGE: usize = 2000;
const LABEL_OF_ONE_IN_100: &str = r#""share":"one-in-100""#;

/// Remembers every namespace that was created, so that all can be removed.
pub struct Scratch {
    prefix: String,
    namespaces: Vec<String>,
    /// The paths of objects outside of these namespaces.
    others: Vec<String>,
}

/// A collection in one of these namespaces, usually of ConfigMaps.
#[derive(Clone)]
pub struct Collection {
    pub path: Arc<str>,
}

impl Collection {
    /// The Pods of the same namespace.
    pub fn pods(&self) -> Self {
        Self { path: self.path.replace("/configmaps", "/pods").into() }
    }

    pub fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

impl Scratch {
    pub fn new(_: &Context) -> Self {
        Self { prefix: format!("loadgen-{}", std::process::id()), namespaces: Vec::new(), others: Vec::new() }
    }

    pub async fn namespace(&mut self, context: &Context, purpose: &str) -> Result<Collection> {
        let name = format!("{}-{purpose}", self.prefix);
        let body = format!(r#"{{"kind":"Namespace","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#);
        let connection = Connection::open(&context.target, Protocol::Http1).await?;
        connection.call(Method::POST, "/api/v1/namespaces", Some((JSON, body.into()))).await?.success()?;
        let path = format!("/api/v1/namespaces/{name}/configmaps");
        self.namespaces.push(name);
        Ok(Collection { path: path.into() })
    }

    /// Objects that are about to be created outside of the namespaces.
    pub fn others(&mut self, paths: impl IntoIterator<Item = String>) {
        self.others.extend(paths);
    }

    /// Deletes everything that was created. Objects are deleted first, since a server without controllers would keep
    /// them.
    pub async fn remove(&mut self, context: &Context) -> Result<()> {
        for name in std::mem::take(&mut self.namespaces) {
            eprintln!("removing namespace {name}");
            let connection = Connection::open(&context.target, Protocol::Http1).await?;
            for resource in ["configmaps", "pods"] {
                empty(&connection, &format!("/api/v1/namespaces/{name}/{resource}")).await?;
            }
            delete(&connection, &format!("/api/v1/namespaces/{name}")).await?;
        }
        let connection = Connection::open(&context.target, Protocol::Http1).await?;
        for path in std::mem::take(&mut self.others) {
            delete(&connection, &path).await?;
        }
        Ok(())
    }
}

async fn delete(connection: &Connection, path: &str) -> Result<()> {
    let answer = connection.call(Method::DELETE, path, None).await?;
    if answer.status != StatusCode::NOT_FOUND && answer.status != StatusCode::CONFLICT {
        answer.success()?;
    }
    Ok(())
}

async fn empty(connection: &Connection, path: &str) -> Result<()> {
    loop {
        let page = format!("{path}?limit={DELETE_PAGE}&gracePeriodSeconds=0");
        let answer = connection.call(Method::DELETE, &page, None).await?.success()?;
        if memchr::memmem::find(&answer.body, b"\"uid\":").is_none() {
            return Ok(());
        }
    }
}

/// The name of the `i`th object of a filled collection.
pub fn name(i: usize) -> String {
    format!("object-{i:06}")
}

/// Creates `count` objects, one in a hundred of them with a label of its own.
pub async fn fill(target: &Arc<Target>, collection: &Collection, count: usize, bytes: usize) -> Result<()> {
    eprintln!("creating {count} objects of about {bytes} bytes");
    let maker = Maker::new(bytes);
    let object = move |i: usize| {
        let labels = if i.is_multiple_of(100) { LABEL_OF_ONE_IN_100 } else { "" };
        maker.object(&name(i), labels, "0")
    };
    fill_with(target, collection, count, object).await
}

/// Creates the objects 0 to `count`.
pub async fn fill_with(
    target: &Arc<Target>,
    collection: &Collection,
    count: usize,
    object: impl Fn(usize) -> Bytes + Send + Sync + 'static,
) -> Result<()> {
    let (object, next) = (Arc::new(object), Arc::new(AtomicUsize::new(0)));
    let mut connections = Vec::new();
    for _ in 0..FILLER_CONNECTIONS {
        connections.push(Arc::new(Connection::open(target, Protocol::Http2).await?));
    }
    let mut fillers = tokio::task::JoinSet::new();
    for filler in 0..FILLERS {
        let connection = connections[filler % FILLER_CONNECTIONS].clone();
        let (object, next, collection) = (object.clone(), next.clone(), collection.clone());
        fillers.spawn(async move {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    return Ok(());
                }
                connection.call(Method::POST, &collection.path, Some((JSON, object(i)))).await?.success()?;
            }
        });
    }
    while let Some(filler) = fillers.join_next().await {
        let outcome: Result<()> = filler?;
        outcome?;
    }
    Ok(())
}
