//! CustomResourceDefinitions that a server has before it is ready.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, StatusCode, header};

use crate::codec::yaml;
use crate::fields;
use crate::http::in_process::Caller;
use crate::http::server::Responder;
use crate::tree::{Map, Value};
use crate::user::User;

pub const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const KIND: &str = "CustomResourceDefinition";
/// The suffixes of files that are read, as envtest reads them.
const SUFFIXES: [&str; 3] = ["yaml", "yml", "json"];

/// The source of definitions.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, or a directory with files.
    Path(PathBuf),
    /// A definition, or a List of them; the error if the value could not be written as JSON.
    Object(Result<Value, String>),
}

/// The reason why a definition could not be read or applied, which is the text of the server's Status in the latter case.
#[derive(Debug, thiserror::Error)]
#[error("the definition {place} cannot be used: {why}")]
pub struct Invalid {
    /// The file, or the name in case of a value.
    place: String,
    why: String,
}

/// A CustomResourceDefinition.
#[derive(Debug)]
pub struct Definition {
    /// See [`Invalid::place`].
    place: String,
    pub name: String,
    pub object: Map,
}

/// Reads the definitions of all sources.
pub fn read(sources: &[Source]) -> Result<Vec<Definition>, Invalid> {
    let mut definitions = Vec::new();
    for source in sources {
        let found = match source {
            Source::Path(path) => read_path(path)?,
            Source::Object(Ok(value)) => of_value(value)?,
            Source::Object(Err(why)) => {
                return Err(Invalid { place: "of a value".to_owned(), why: why.clone() });
            }
        };
        definitions.extend(found);
    }
    Ok(definitions)
}

/// Creates or replaces the definitions, and returns once they are served.
pub(super) async fn apply_all(
    responder: &Arc<dyn Responder>,
    definitions: Vec<Definition>,
) -> Result<(), Invalid> {
    for definition in definitions {
        let place = definition.place.clone();
        apply(responder, definition).await.map_err(|why| Invalid { place, why })?;
    }
    Ok(())
}

fn of_value(value: &Value) -> Result<Vec<Definition>, Invalid> {
    let mut found = Vec::new();
    collect(None, value.clone(), &mut found);
    match found.is_empty() {
        true => Err(Invalid { place: "of a value".to_owned(), why: format!("it is no {KIND}") }),
        false => Ok(found),
    }
}

/// Reads a file, or the files of a directory, whose documents may be other objects, which are skipped.
fn read_path(path: &Path) -> Result<Vec<Definition>, Invalid> {
    let refused = |path: &Path, why: String| Invalid { place: format!("in {}", path.display()), why };
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
            collect(Some(file), value, &mut found);
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
fn collect(path: Option<&Path>, value: Value, found: &mut Vec<Definition>) {
    let Value::Object(object) = value else { return };
    match fields::text(&object, &["kind"]) {
        KIND => {
            let name = fields::text(&object, &["metadata", "name"]).to_owned();
            let place = path.map_or_else(|| name.clone(), |path| format!("in {}", path.display()));
            found.push(Definition { place, name, object });
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
