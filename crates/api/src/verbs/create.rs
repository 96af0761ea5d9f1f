//! POST: a new object.

use crate::decode::Body;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::meta;
use crate::meta::owners::{Found, drop_repeated};
use crate::request::Request;
use crate::write::{Existing, Proposal, Write};
use crate::{Answer, Api, metadata_mut};

impl Api {
    /// Creates an object. The target's namespace is empty for cluster-scoped resources.
    pub async fn create(&self, request: &Request<'_>, body: Body<'_>) -> Result<Answer, Error> {
        let target = request.target;
        let namespace = target.resource.definition.namespaced().then_some(target.namespace);
        let write = Write {
            existing: Existing::Refuse,
            ..Write::change(request, Part::Main, Some(request.options.write().manager()))
        };
        let propose = &mut |_: Option<&_>| {
            let mut object = body.decode(request)?;
            let metadata = metadata_mut(&mut object);
            meta::ensure_namespace(metadata, namespace)?;
            meta::create::wipe(metadata);
            drop_repeated(metadata, Found::InBody, request.warnings);
            Ok(Proposal::Object(object))
        };
        Ok(self.modify(write, propose).await?.answer)
    }
}
