//! CONNECT: where requests lead that are passed on to kubelets, Pods and Services, and whether they may.
//!
//! Nothing is written. Admission sees the options as the object of the operation CONNECT, and may change them.

pub mod container;
pub mod log;
pub mod options;
pub mod proxy;

use crate::admission::{Attempt, Operation};
use crate::auth::authorizer::{Refusal, authorize};
use crate::cache::State;
use crate::error::Error;
use crate::relay::Address;
use crate::request::Request;
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::Verb;
use crate::tree::Value;
use crate::{Api, ObjectMap, fields};

const PODS: Gvr = Gvr::fixed("v1", "pods");
const NODES: Gvr = Gvr::fixed("v1", "nodes");
const SERVICES: Gvr = Gvr::fixed("v1", "services");
const ENDPOINTS: Gvr = Gvr::fixed("v1", "endpoints");

/// The address, path and query to which a request is passed on.
#[derive(Clone, Debug)]
pub struct Location {
    pub address: Address,
    /// The path as it stands in a URL. Empty for a proxy's own path without a slash.
    pub path: String,
    /// The query as it stands in a URL.
    pub query: String,
    /// Whether this is a kubelet that says of itself that it speaks in WebSockets all that clients speak in them.
    pub takes_websockets: bool,
}

impl Location {
    /// The URL as errors show it.
    pub fn url(&self) -> String {
        let question = if self.query.is_empty() { "" } else { "?" };
        let Self { address, path, query, .. } = self;
        format!("{}://{}{path}{question}{query}", address.scheme(), address.authority())
    }

    /// The path and the query of a request line.
    pub fn target(&self) -> String {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        if self.query.is_empty() { path.to_owned() } else { format!("{path}?{}", self.query) }
    }
}

impl Api {
    /// Lets admission see the options of a connection. Returns them as plugins leave them.
    pub async fn admit_connection(
        &self,
        request: &Request<'_>,
        options: ObjectMap,
    ) -> Result<ObjectMap, Error> {
        let mut attempt = Attempt::new(self, request, Operation::Connect, None).with(options);
        self.admission.mutate(&mut attempt).await?;
        self.admission.validate(&mut attempt).await?;
        attempt.take_object()
    }

    /// 403 unless the user may create the subresource: whoever may only get it must not run commands by way of WebSockets,
    /// which begin with GET (upstream's gate AuthorizePodWebsocketUpgradeCreatePermission).
    pub async fn authorize_stream(&self, request: &Request<'_>) -> Result<(), Error> {
        match authorize(request.authorizer, &request.attributes(Verb::Create.as_str())).await {
            Ok(_) => Ok(()),
            Err(Refusal::Forbidden { reason, .. }) => Err(request.target.forbidden(reason)),
            Err(Refusal::Failed(why)) => Err(Error::Internal(why)),
        }
    }

    /// The location of the streams of exec, attach and portforward.
    pub async fn stream_location(
        &self,
        request: &Request<'_>,
        options: &ObjectMap,
    ) -> Result<Location, Error> {
        let (namespace, name) = (request.target.namespace, request.target.name);
        let state = self.cache.fresh().await?;
        let pod = self.stored(&state, &PODS, namespace, name)?;
        let path = match request.subresource {
            "portforward" => format!("/portForward/{namespace}/{name}"),
            subresource => {
                let container = container::chosen(&pod, name, fields::text(options, &["container"]))?;
                format!("/{subresource}/{namespace}/{name}/{container}")
            }
        };
        let node = fields::text(&pod, &["spec", "nodeName"]);
        if node.is_empty() {
            return Err(Error::BadRequest(format!("pod {name} does not have a host assigned")));
        }
        self.at_kubelet(&state, node, path, options::for_kubelet(options)).await
    }

    /// The location of a container's log; `None` if the Pod is on no Node yet.
    pub async fn log_location(
        &self,
        request: &Request<'_>,
        options: &log::LogOptions,
    ) -> Result<Option<Location>, Error> {
        let (namespace, name) = (request.target.namespace, request.target.name);
        let state = self.cache.fresh().await?;
        let pod = self.stored(&state, &PODS, namespace, name)?;
        let container = container::chosen(&pod, name, &options.container)?;
        let node = fields::text(&pod, &["spec", "nodeName"]);
        if node.is_empty() {
            return Ok(None);
        }
        let path = format!("/containerLogs/{namespace}/{name}/{container}");
        let mut location = self.at_kubelet(&state, node, path, options.for_kubelet()).await?;
        if options.skips_verification {
            location.address.tls = Some(self.kubelets.tls().await.unverified);
        }
        Ok(Some(location))
    }

    async fn at_kubelet(
        &self,
        state: &State,
        node: &str,
        path: String,
        query: String,
    ) -> Result<Location, Error> {
        let node = self.stored(state, &NODES, "", node)?;
        let address = self.kubelets.address(&node).await?;
        let features = node.get("status").map(|status| &status["declaredFeatures"]);
        let features = features.and_then(Value::as_array).into_iter().flatten();
        let takes_websockets = features.into_iter().any(|feature| *feature == "ExtendWebSocketsToKubelet");
        Ok(Location { address, path, query, takes_websockets })
    }

    /// An object as it is now; 404 if there is none.
    fn stored(&self, state: &State, gvr: &Gvr, namespace: &str, name: &str) -> Result<ObjectMap, Error> {
        let resource = self.resources.get(gvr).ok_or(Error::UnknownResource)?;
        let not_found = || Error::not_found(GroupResource::new("", gvr.plural.as_str()), name);
        let found = state.get(resource.id, namespace, name).ok_or_else(not_found)?;
        resource.decode(&found)
    }
}
