//! Whether somebody can be behind a Service, before anybody is asked: the checks of kube-aggregator's
//! `AvailableConditionController`, in its order and words.

use super::{ServicePort, ServiceRoutes, port_name};
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// Why nobody is behind a Service: a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `False`, or `Unknown` if it cannot be known.
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl ServiceRoutes {
    /// Fails if nobody can be behind the Service. One with an address of its own by `--service-address` needs neither a
    /// Service nor endpoints.
    pub fn check(&self, to: ServicePort<'_>) -> Result<(), Problem> {
        let state = self.cache.any();
        let shown = format!("service/{} in {:?}", to.name, to.namespace);
        let unknown = |reason| {
            let message = format!("{shown} cannot be checked due to: ");
            move |why: String| Problem { status: "Unknown", reason, message: format!("{message}{why}") }
        };
        let is_not = |reason, message| Err(Problem { status: "False", reason, message });
        let service = self.service(&state, to).map_err(unknown("ServiceAccessError"))?;
        if self.config.fixed.get(to, service.as_ref()).is_some() {
            return Ok(());
        }
        let Some(service) = service else {
            return is_not("ServiceNotFound", format!("{shown} is not present"));
        };
        if !matches!(fields::text(&service, &["spec", "type"]), "" | "ClusterIP") {
            return Ok(());
        }
        let Ok(port) = port_name(&service, to) else {
            return is_not("ServicePortError", format!("{shown} is not listening on port {}", to.port));
        };
        let slices = self.slices(&state, to).map_err(unknown("EndpointsAccessError"))?;
        if slices.is_empty() {
            return is_not("EndpointsNotFound", format!("cannot find endpointslices for {shown}"));
        }
        if !slices.iter().any(|slice| has_endpoint(slice, port)) {
            let message = format!("endpointslices for {shown} have no addresses with port name {port:?}");
            return is_not("MissingEndpoints", message);
        }
        Ok(())
    }
}

/// Whether a slice has a ready endpoint, and a port of this name.
fn has_endpoint(slice: &ObjectMap, port: &str) -> bool {
    let is_ready = |endpoint: &Value| {
        endpoint.get("conditions").and_then(|conditions| conditions.get("ready")) != Some(&Value::Bool(false))
    };
    let is_meant = |found: &Value| {
        found.get("name").and_then(Value::as_str) == Some(port)
            && found.get("port").is_some_and(Value::is_number)
    };
    fields::items(slice, &["endpoints"]).iter().any(is_ready)
        && fields::items(slice, &["ports"]).iter().any(is_meant)
}
