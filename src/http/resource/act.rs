//! POST of what is no object but something to be done: bindings and evictions.

use super::Context;
use crate::api::decode::{Encoded, typed_object};
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::{ObjectMap, Target, fields};
use crate::http::status::done;
use crate::tree::Value;

impl Context<'_> {
    /// The answer to a request of that sort; `None` for all others.
    pub(super) async fn act(&self, body: &Encoded, options: &WriteOptions) -> Result<Option<Value>, Error> {
        let strictness = self.strictness(options);
        match (&*self.definition.plural, self.path.subresource.as_deref()) {
            ("bindings", None) if self.definition.group.is_empty() => {
                let binding = typed_object("Binding", "v1", body, strictness)?;
                let name = fields::text(&binding, &["metadata", "name"]).to_owned();
                self.bind(&name, binding, options).await?;
            }
            ("pods", Some("binding")) => {
                let binding = typed_object("Binding", "v1", body, strictness)?;
                self.bind(self.target()?.name, binding, options).await?;
            }
            ("pods", Some("eviction")) => {
                let eviction = typed_object("Eviction", "policy/v1", body, strictness)?;
                self.app.api.evict(self.target()?, eviction, options, &self.user).await?;
            }
            _ => return Ok(None),
        }
        Ok(Some(done()))
    }

    async fn bind(&self, name: &str, binding: ObjectMap, options: &WriteOptions) -> Result<(), Error> {
        let pods = self.app.api.resources.get("", "v1", "pods").ok_or(Error::UnknownResource)?;
        let pod = Target { resource: pods, namespace: self.path.namespace_text(), name };
        self.app.api.bind(pod, binding, options).await
    }
}
