//! CustomResourceDefinitions from files, which a server has before it is ready (`--crds`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use futures_util::FutureExt as _;

use super::error::{Error, InvalidDefinition};
use crate::codec::yaml;
use crate::fields;
use crate::http::in_process::Caller;
use crate::http::server::Responder;
use crate::server::application;
use crate::server::environment::{Application, Build, Environment};
use crate::server::error::BuildError;
use crate::tree::{Map, Value};
use crate::user::User;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const KIND: &str = "CustomResourceDefinition";
/// The suffixes of files that are read, as envtest reads them.
const SUFFIXES: [&str; 3] = ["yaml", "yml", "json"];

/// A CustomResourceDefinition of a file.
#[derive(Debug)]
struct Definition {
    path: PathBuf,
    name: String,
    object: Map,
}

/// The application of a server that has the definitions of these files and directories.
pub fn build(paths: &[PathBuf]) -> Result<Build, Error> {
    let mut definitions = Vec::new();
    for path in paths {
        definitions.extend(read(path)?);
    }
    Ok(Box::new(move |environment| started(environment, definitions).boxed()))
}

async fn started(environment: Environment, definitions: Vec<Definition>) -> Result<Application, BuildError> {
    let application = application::build(environment).await?;
    for definition in definitions {
        let path = definition.path.clone();
        if let Err(why) = apply(&application.responder, definition).await {
            application.stop.await;
            return Err(Box::new(InvalidDefinition { path, why }));
        }
    }
    Ok(application)
}

/// Reads a file, or the files of a directory, whose documents may be other objects, which are skipped.
fn read(path: &Path) -> Result<Vec<Definition>, Error> {
    let refused =
        |path: &Path, why: String| Error::Definition(InvalidDefinition { path: path.to_owned(), why });
    let io = |error: std::io::Error| refused(path, error.to_string());
    let mut files = vec![path.to_owned()];
    if std::fs::metadata(path).map_err(io)?.is_dir() {
        let entries = std::fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        files = entries
            .map_err(io)?
            .iter()
            .map(std::fs::DirEntry::path)
            .filter(|path| is_manifest(path))
            .collect();
        files.sort();
    }
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read(file).map_err(|error| refused(file, error.to_string()))?;
        let documents = yaml::documents(&text).map_err(|why| refused(file, why))?;
        for document in documents {
            let value = yaml::parse(&document).map_err(|why| refused(file, why))?;
            collect(file, value, &mut found);
        }
    }
    match found.is_empty() {
        true => Err(refused(path, format!("there is no {KIND} in it"))),
        false => Ok(found),
    }
}

fn is_manifest(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|suffix| SUFFIXES.iter().any(|known| suffix == *known))
}

/// Takes in a definition, or the definitions of a List.
fn collect(path: &Path, value: Value, found: &mut Vec<Definition>) {
    let Value::Object(object) = value else { return };
    match fields::text(&object, &["kind"]) {
        KIND => {
            let name = fields::text(&object, &["metadata", "name"]).to_owned();
            found.push(Definition { path: path.to_owned(), name, object });
        }
        "List" | "CustomResourceDefinitionList" => {
            fields::items(&object, &["items"]).iter().for_each(|item| collect(path, item.clone(), found));
        }
        _ => {}
    }
}

/// Creates or replaces a definition. The error is one for people.
async fn apply(responder: &Arc<dyn Responder>, definition: Definition) -> Result<(), String> {
    let Definition { name, mut object, .. } = definition;
    let path = format!("{PATH}/{name}");
    let created = ask(responder, Method::POST, PATH, Some(&object)).await?;
    let answer = match created {
        (StatusCode::CONFLICT, _) => {
            let (_, present) = ask(responder, Method::GET, &path, None).await?;
            let version = present["metadata"]["resourceVersion"].clone();
            fields::object_mut(&mut object, "metadata").insert("resourceVersion", version);
            ask(responder, Method::PUT, &path, Some(&object)).await?
        }
        created => created,
    };
    let (status, answer) = answer;
    if !status.is_success() {
        return Err(answer["message"].as_str().unwrap_or(status.as_str()).to_owned());
    }
    // A definition whose names are another one's is created, but not served.
    let conditions = answer["status"]["conditions"].as_array().into_iter().flatten();
    let mut failed = conditions.filter(|condition| condition["status"].as_str() == Some("False"));
    match failed.find(|condition| matches!(condition["type"].as_str(), Some("NamesAccepted" | "Established")))
    {
        Some(condition) => Err(format!("{name}: {}", condition["message"].as_str().unwrap_or_default())),
        None => Ok(()),
    }
}

async fn ask(
    responder: &Arc<dyn Responder>,
    method: Method,
    path: &str,
    object: Option<&Map>,
) -> Result<(StatusCode, Value), String> {
    let body = object.map(|object| Value::Object(object.clone()).to_string()).unwrap_or_default();
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    let mut request = request.body(Body::from(body)).map_err(|error| error.to_string())?;
    request.extensions_mut().insert(Caller(Arc::new(User::admin().authenticated())));
    let answer = responder.clone().respond(request).await;
    let status = answer.status();
    let body: Bytes = to_bytes(answer.into_body(), usize::MAX).await.map_err(|error| error.to_string())?;
    Ok((status, serde_json::from_slice(&body).map_err(|error| error.to_string())?))
}
