//! Actions, which are sent to the server and never stored: bindings, evictions, requests for tokens, and reviews. Plugins see
//! each as the creation of such an object.

use crate::admission::{Attempt, Operation};
use crate::decode::sent_kind;
use crate::error::Error;
use crate::meta::owners::{Found, drop_repeated};
use crate::request::Request;
use crate::{Api, ObjectMap, meta, metadata_mut};

impl Api {
    /// Lets plugins complete the object that has been sent. The rules of its kind come afterwards, and then
    /// [`Chain::validate`](crate::admission::Chain::validate).
    pub(crate) async fn complete_action<'a>(
        &'a self,
        request: &'a Request<'a>,
        mut object: ObjectMap,
    ) -> Result<Attempt<'a>, Error> {
        if let Some(record) = request.audit {
            record.requested(&object);
        }
        let (definition, options) = (&request.target.resource.definition, request.options.write());
        let own = metadata_mut(&mut object);
        if !names_uid(request) {
            meta::create::wipe(own);
        }
        meta::ensure_namespace(own, definition.namespaced().then_some(request.target.namespace))?;
        drop_repeated(own, Found::InBody, request.warnings);
        let (kind, subresource) = (sent_kind(request)?, request.subresource);
        self.actions.track(kind, &mut object, options.manager(), subresource, &self.now());
        let mut attempt = Attempt::new(self, request, Operation::Create, None).with(object);
        self.admission.mutate(&mut attempt).await?;
        Ok(attempt)
    }
}

/// Whether the uid in the object is that of the object it is about (upstream's `SubresourceObjectMetaPreserver`).
fn names_uid(request: &Request<'_>) -> bool {
    matches!(request.subresource, "binding" | "token")
}
