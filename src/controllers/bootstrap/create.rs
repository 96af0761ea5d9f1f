//! Objects of the server's own.

use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::{Api, Target};
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::Value;

/// Creates an object unless it exists.
pub(in crate::controllers) async fn create(
    api: &Api,
    resource: &Gvr,
    namespace: &str,
    object: Value,
) -> Result<(), Error> {
    let (Some(resource), Value::Object(object)) = (api.resources.get(resource), object) else {
        return Ok(());
    };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    match api.create(&request, Body::Object(&object)).await {
        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
