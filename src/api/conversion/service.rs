//! Where a Service is reached, as kube-apiserver without aggregator routing finds it (apiserver's
//! `pkg/util/proxy`, `ResolveCluster`).

use super::Converter;
use crate::api::{ObjectMap, fields};
use crate::tree::Value;

impl Converter {
    /// `host:port` of a Service's port, or upstream's words for why there is none.
    pub(in crate::api) fn service_address(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<String, String> {
        let found = self.services.and_then(|services| self.cache.any().get(services, namespace, name));
        let service = found.ok_or_else(|| format!("service \"{name}\" not found"))?;
        address(&service.to_map().map_err(|error| error.to_string())?, name, port)
    }
}

fn address(service: &ObjectMap, name: &str, port: u16) -> Result<String, String> {
    let text = |field| fields::text(service, &["spec", field]);
    let host = match text("type") {
        "" | "ClusterIP" if text("clusterIP") == "None" => {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        "" | "ClusterIP" | "NodePort" | "LoadBalancer" => {
            let ports = fields::items(service, &["spec", "ports"]).iter();
            let mut ports = ports.filter_map(|port| port.get("port").and_then(Value::as_u64));
            if !ports.any(|found| found == u64::from(port)) {
                return Err(format!("no service port {port} found for service \"{name}\""));
            }
            text("clusterIP")
        }
        "ExternalName" => text("externalName"),
        other => return Err(format!("unsupported service type \"{other}\"")),
    };
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn services_are_resolved_as_upstream_does() {
        let of = |spec: Value| {
            let service = json!({"spec": spec});
            address(service.as_object().expect("an object"), "hook", 443)
        };
        let ports = json!([{"port": 80}, {"port": 443}]);
        for (kind, ip, address) in [
            ("ClusterIP", "10.0.0.7", "10.0.0.7:443"),
            ("NodePort", "10.0.0.7", "10.0.0.7:443"),
            ("LoadBalancer", "fd00::7", "[fd00::7]:443"),
        ] {
            assert_eq!(of(json!({"type": kind, "clusterIP": ip, "ports": ports})).as_deref(), Ok(address));
        }
        let external = json!({"type": "ExternalName", "externalName": "hook.example"});
        assert_eq!(of(external).as_deref(), Ok("hook.example:443"));
        for (spec, why) in [
            (
                json!({"type": "ClusterIP", "clusterIP": "None"}),
                "cannot route to service with ClusterIP \"None\"",
            ),
            (json!({"clusterIP": "10.0.0.7", "ports": []}), "no service port 443 found for service \"hook\""),
            (json!({"type": "Odd"}), "unsupported service type \"Odd\""),
        ] {
            assert_eq!(of(spec).expect_err("no address"), why);
        }
    }
}
