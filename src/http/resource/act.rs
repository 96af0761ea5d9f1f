//! POST of what is no object but something to be done: bindings and evictions.

use super::Context;
use crate::api::decode::{Encoded, object, typed_object};
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::{ObjectMap, Target, fields};
use crate::http::status::done;
use crate::schema::kind::Kind;
use crate::schema::names::Gvr;
use crate::tree::Value;

impl Context<'_> {
    /// The answer to a request of that sort; `None` for all others.
    pub(super) async fn act(&self, body: &Encoded, options: &WriteOptions) -> Result<Option<Value>, Error> {
        let strictness = self.strictness(options);
        match (&*self.definition.plural, self.path.subresource.as_deref()) {
            ("bindings", None) if self.definition.group().is_empty() => {
                let binding = object(self.definition, body, strictness)?;
                let name = fields::text(&binding, &["metadata", "name"]).to_owned();
                self.bind(&name, binding, options).await?;
            }
            ("pods", Some("binding")) => {
                let binding = typed_object(self.subresource_kind()?, body, strictness)?;
                self.bind(self.target()?.name, binding, options).await?;
            }
            ("pods", Some("eviction")) => {
                let eviction = typed_object(self.subresource_kind()?, body, strictness)?;
                self.app.api.evict(self.target()?, eviction, options, &self.user).await?;
            }
            _ => return Ok(None),
        }
        Ok(Some(done()))
    }

    /// The kind of what is sent to the subresource of the path.
    pub(super) fn subresource_kind(&self) -> Result<&Kind, Error> {
        let name = self.path.subresource.as_deref();
        let subresource = name.and_then(|name| self.definition.subresource(name));
        subresource.and_then(|subresource| subresource.kind.as_ref()).ok_or(Error::UnknownResource)
    }

    async fn bind(&self, name: &str, binding: ObjectMap, options: &WriteOptions) -> Result<(), Error> {
        let pods = self.app.api.resources.get(&Gvr::fixed("v1", "pods")).ok_or(Error::UnknownResource)?;
        let pod = Target { resource: pods, namespace: self.path.namespace_text(), name };
        self.app.api.bind(pod, binding, options).await
    }
}
