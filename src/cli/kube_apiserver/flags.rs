//! The flags of kube-apiserver v1.37 and their effects here.

/// How a flag is written, and what its repetition means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--name` alone means true.
    Bool,
    /// The last value counts; an empty one is as good as none.
    Scalar,
    /// The last value counts, and must not be empty: a number, a duration, a range of ports.
    Number,
    /// All values count, and commas separate more of them.
    List,
}

/// The effect of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The value is passed to the flag of `rowplane serve` with this name.
    Serve(&'static str),
    /// So is every value, each by itself.
    Each(&'static str),
    /// Handled by `kube_apiserver` itself.
    Own,
    /// No effect, for this reason.
    None(&'static str),
    /// The server does not start, since it would not do what the flag asks for.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    pub form: Form,
    pub effect: Effect,
}

const fn flag(name: &'static str, form: Form, effect: Effect) -> Flag {
    Flag { name, form, effect }
}

use Effect::{Each, None, Own, Refused, Serve};
use Form::{Bool, List, Number, Scalar};

const NO_ETCD: &str = "there is no etcd here";
const CACHE: &str = "the watch cache sizes itself";
const NO_READER: &str = "nothing reads it, in kube-apiserver either";
const NO_AGGREGATION: &str = "API servers are not aggregated yet";
const NO_PEERS: &str = "all replicas serve the same resources";
const NO_GO: &str = "there is no Go runtime to look into";
const LOGS: &str = "logs are written at once, in one stream";
const METRICS: &str = "all metrics are shown as they are";
const SHUTDOWN: &str = "connections that stand are served until they end, in their grace period";

/// All flags of the reference except `help` and `version`, sorted by name.
pub const FLAGS: &[Flag] = &[
    flag("admission-control", List, Own),
    flag("admission-control-config-file", Scalar, Serve("admission-control-config-file")),
    flag("advertise-address", Scalar, Serve("advertise-address")),
    flag("aggregator-reject-forwarding-redirect", Bool, None(NO_AGGREGATION)),
    flag("allow-metric-labels", List, Each("allow-metric-labels")),
    flag("allow-metric-labels-manifest", Scalar, Serve("allow-metric-labels-manifest")),
    flag("allow-privileged", Bool, None("privileged containers are not forbidden")),
    flag("anonymous-auth", Bool, Serve("anonymous-auth")),
    flag("api-audiences", List, Serve("api-audiences")),
    flag("apiserver-count", Scalar, None("replicas count themselves")),
    flag("audit-log-batch-buffer-size", Number, Serve("audit-log-batch-buffer-size")),
    flag("audit-log-batch-max-size", Number, Serve("audit-log-batch-max-size")),
    flag("audit-log-batch-max-wait", Number, Serve("audit-log-batch-max-wait")),
    flag("audit-log-batch-throttle-burst", Number, Serve("audit-log-batch-throttle-burst")),
    flag("audit-log-batch-throttle-enable", Bool, Serve("audit-log-batch-throttle-enable")),
    flag("audit-log-batch-throttle-qps", Number, Serve("audit-log-batch-throttle-qps")),
    flag("audit-log-compress", Bool, Serve("audit-log-compress")),
    flag("audit-log-format", Scalar, Serve("audit-log-format")),
    flag("audit-log-maxage", Number, Serve("audit-log-maxage")),
    flag("audit-log-maxbackup", Number, Serve("audit-log-maxbackup")),
    flag("audit-log-maxsize", Number, Serve("audit-log-maxsize")),
    flag("audit-log-mode", Scalar, Serve("audit-log-mode")),
    flag("audit-log-path", Scalar, Serve("audit-log-path")),
    flag("audit-log-truncate-enabled", Bool, Serve("audit-log-truncate-enabled")),
    flag("audit-log-truncate-max-batch-size", Number, Serve("audit-log-truncate-max-batch-size")),
    flag("audit-log-truncate-max-event-size", Number, Serve("audit-log-truncate-max-event-size")),
    flag("audit-log-version", Scalar, Serve("audit-log-version")),
    flag("audit-policy-file", Scalar, Serve("audit-policy-file")),
    flag("audit-webhook-batch-buffer-size", Number, Serve("audit-webhook-batch-buffer-size")),
    flag("audit-webhook-batch-initial-backoff", Scalar, Serve("audit-webhook-initial-backoff")),
    flag("audit-webhook-batch-max-size", Number, Serve("audit-webhook-batch-max-size")),
    flag("audit-webhook-batch-max-wait", Number, Serve("audit-webhook-batch-max-wait")),
    flag("audit-webhook-batch-throttle-burst", Number, Serve("audit-webhook-batch-throttle-burst")),
    flag("audit-webhook-batch-throttle-enable", Bool, Serve("audit-webhook-batch-throttle-enable")),
    flag("audit-webhook-batch-throttle-qps", Number, Serve("audit-webhook-batch-throttle-qps")),
    flag("audit-webhook-config-file", Scalar, Serve("audit-webhook-config-file")),
    flag("audit-webhook-initial-backoff", Number, Serve("audit-webhook-initial-backoff")),
    flag("audit-webhook-mode", Scalar, Serve("audit-webhook-mode")),
    flag("audit-webhook-truncate-enabled", Bool, Serve("audit-webhook-truncate-enabled")),
    flag("audit-webhook-truncate-max-batch-size", Number, Serve("audit-webhook-truncate-max-batch-size")),
    flag("audit-webhook-truncate-max-event-size", Number, Serve("audit-webhook-truncate-max-event-size")),
    flag("audit-webhook-version", Scalar, Serve("audit-webhook-version")),
    flag("authentication-config", Scalar, Serve("authentication-config")),
    flag("authentication-token-webhook-cache-ttl", Number, Serve("authentication-token-webhook-cache-ttl")),
    flag(
        "authentication-token-webhook-config-file",
        Scalar,
        Serve("authentication-token-webhook-config-file"),
    ),
    flag("authentication-token-webhook-version", Scalar, Serve("authentication-token-webhook-version")),
    flag("authorization-config", Scalar, Serve("authorization-config")),
    flag("authorization-mode", List, Serve("authorization-mode")),
    flag("authorization-policy-file", Scalar, Serve("authorization-policy-file")),
    flag(
        "authorization-webhook-cache-authorized-ttl",
        Number,
        Serve("authorization-webhook-cache-authorized-ttl"),
    ),
    flag(
        "authorization-webhook-cache-unauthorized-ttl",
        Number,
        Serve("authorization-webhook-cache-unauthorized-ttl"),
    ),
    flag("authorization-webhook-config-file", Scalar, Serve("authorization-webhook-config-file")),
    flag("authorization-webhook-version", Scalar, Serve("authorization-webhook-version")),
    flag("bind-address", Scalar, Serve("bind-address")),
    flag("cert-dir", Scalar, Own),
    flag("client-ca-file", Scalar, Serve("client-ca-file")),
    flag("contention-profiling", Bool, None(NO_GO)),
    flag("coordinated-leadership-lease-duration", Number, None("leadership is not coordinated here")),
    flag("coordinated-leadership-renew-deadline", Number, None("leadership is not coordinated here")),
    flag("coordinated-leadership-retry-period", Number, None("leadership is not coordinated here")),
    flag("cors-allowed-origins", List, Serve("cors-allowed-origins")),
    flag("debug-socket-path", Scalar, None(NO_GO)),
    flag("default-not-ready-toleration-seconds", Number, Serve("default-not-ready-toleration-seconds")),
    flag("default-unreachable-toleration-seconds", Number, Serve("default-unreachable-toleration-seconds")),
    flag("default-watch-cache-size", Scalar, None(CACHE)),
    flag("delete-collection-workers", Number, None("collections are deleted without workers")),
    flag("disable-admission-plugins", List, Serve("disable-admission-plugins")),
    flag("disable-http2-serving", Bool, Serve("disable-http2-serving")),
    flag("disabled-metrics", List, None(METRICS)),
    flag("egress-selector-config-file", Scalar, Refused),
    flag("emulated-version", List, Refused),
    flag("emulation-forward-compatible", Bool, None("one version is served")),
    flag("enable-admission-plugins", List, Serve("enable-admission-plugins")),
    flag("enable-aggregator-routing", Bool, Serve("enable-aggregator-routing")),
    flag("enable-bootstrap-token-auth", Bool, Serve("enable-bootstrap-token-auth")),
    flag("enable-garbage-collector", Bool, Serve("enable-garbage-collector")),
    flag("enable-logs-handler", Bool, None("logs are not served")),
    flag("enable-priority-and-fairness", Bool, Serve("enable-priority-and-fairness")),
    flag("encryption-provider-config", Scalar, Serve("encryption-provider-config")),
    flag(
        "encryption-provider-config-automatic-reload",
        Bool,
        Serve("encryption-provider-config-automatic-reload"),
    ),
    flag("endpoint-reconciler-type", Scalar, None("endpoints follow the leases of servers")),
    flag("etcd-cafile", Scalar, None(NO_ETCD)),
    flag("etcd-certfile", Scalar, None(NO_ETCD)),
    flag("etcd-compaction-interval", Number, Serve("compaction-interval")),
    flag("etcd-count-metric-poll-period", Number, None(NO_ETCD)),
    flag("etcd-db-metric-poll-interval", Number, None(NO_ETCD)),
    flag("etcd-healthcheck-timeout", Number, None(NO_ETCD)),
    flag("etcd-keyfile", Scalar, None(NO_ETCD)),
    flag("etcd-prefix", Scalar, None(NO_ETCD)),
    flag("etcd-readycheck-timeout", Number, None(NO_ETCD)),
    flag("etcd-servers", List, None("there is no etcd here, --datastore says where state is kept")),
    flag("etcd-servers-overrides", List, None(NO_ETCD)),
    flag("event-ttl", Number, Serve("event-ttl")),
    flag("external-hostname", Scalar, None("documents name the address that is bound")),
    flag("feature-gates", List, Own),
    flag("goaway-chance", Number, Serve("goaway-chance")),
    flag("http2-max-streams-per-connection", Number, Serve("http2-max-streams-per-connection")),
    flag("kubelet-certificate-authority", Scalar, Serve("kubelet-certificate-authority")),
    flag("kubelet-client-certificate", Scalar, Serve("kubelet-client-certificate")),
    flag("kubelet-client-key", Scalar, Serve("kubelet-client-key")),
    flag("kubelet-port", Scalar, Serve("kubelet-port")),
    flag("kubelet-preferred-address-types", List, Serve("kubelet-preferred-address-types")),
    flag("kubelet-read-only-port", Scalar, None(NO_READER)),
    flag("kubelet-timeout", Number, None(NO_READER)),
    flag("kubernetes-service-node-port", Number, None("the Service has no port on nodes")),
    flag("lease-reuse-duration-seconds", Number, None(NO_ETCD)),
    flag("livez-grace-period", Number, None("the server is alive from its first request on")),
    flag("log-flush-frequency", Number, None(LOGS)),
    flag("log-json-info-buffer-size", Scalar, None(LOGS)),
    flag("log-json-split-stream", Bool, None(LOGS)),
    flag("log-text-info-buffer-size", Scalar, None(LOGS)),
    flag("log-text-split-stream", Bool, None(LOGS)),
    flag("logging-format", Scalar, Serve("log-format")),
    flag("max-connection-bytes-per-sec", Number, Serve("max-connection-bytes-per-sec")),
    flag("max-mutating-requests-inflight", Number, Serve("max-mutating-requests-inflight")),
    flag("max-requests-inflight", Number, Serve("max-requests-inflight")),
    flag("min-compatibility-version", List, Refused),
    flag("min-request-timeout", Number, Serve("min-request-timeout")),
    flag("oidc-ca-file", Scalar, Serve("oidc-ca-file")),
    flag("oidc-client-id", Scalar, Serve("oidc-client-id")),
    flag("oidc-groups-claim", Scalar, Serve("oidc-groups-claim")),
    flag("oidc-groups-prefix", Scalar, Serve("oidc-groups-prefix")),
    flag("oidc-issuer-url", Scalar, Serve("oidc-issuer-url")),
    flag("oidc-required-claim", List, Serve("oidc-required-claim")),
    flag("oidc-signing-algs", List, Serve("oidc-signing-algs")),
    flag("oidc-username-claim", Scalar, Serve("oidc-username-claim")),
    flag("oidc-username-prefix", Scalar, Serve("oidc-username-prefix")),
    flag("peer-advertise-ip", Scalar, None(NO_PEERS)),
    flag("peer-advertise-port", Scalar, None(NO_PEERS)),
    flag("peer-ca-file", Scalar, None(NO_PEERS)),
    flag("permit-address-sharing", Bool, None("the port is this server's alone")),
    flag("permit-port-sharing", Bool, None("the port is this server's alone")),
    flag("profiling", Bool, None(NO_GO)),
    flag("proxy-client-cert-file", Scalar, None(NO_AGGREGATION)),
    flag("proxy-client-key-file", Scalar, None(NO_AGGREGATION)),
    flag("request-timeout", Number, Serve("request-timeout")),
    flag("requestheader-allowed-names", List, Serve("requestheader-allowed-names")),
    flag("requestheader-client-ca-file", Scalar, Serve("requestheader-client-ca-file")),
    flag("requestheader-extra-headers-prefix", List, Serve("requestheader-extra-headers-prefix")),
    flag("requestheader-group-headers", List, Serve("requestheader-group-headers")),
    flag("requestheader-uid-headers", List, Serve("requestheader-uid-headers")),
    flag("requestheader-username-headers", List, Serve("requestheader-username-headers")),
    flag("runtime-config", List, Serve("runtime-config")),
    flag("runtime-config-emulation-forward-compatible", Bool, None("one version is served")),
    flag("secure-port", Number, Own),
    flag("service-account-extend-token-expiration", Bool, Serve("service-account-extend-token-expiration")),
    flag("service-account-issuer", List, Serve("service-account-issuer")),
    flag("service-account-jwks-uri", Scalar, Serve("service-account-jwks-uri")),
    flag("service-account-key-file", List, Serve("service-account-key-file")),
    flag("service-account-lookup", Bool, None("tokens are always looked up")),
    flag("service-account-max-token-expiration", Number, Serve("service-account-max-token-expiration")),
    flag("service-account-signing-endpoint", Scalar, Serve("service-account-signing-endpoint")),
    flag("service-account-signing-key-file", Scalar, Serve("service-account-signing-key-file")),
    flag("service-cluster-ip-range", Scalar, Serve("service-cluster-ip-range")),
    flag("service-node-port-range", Number, Serve("service-node-port-range")),
    flag("show-hidden-metrics-for-version", Scalar, None(METRICS)),
    flag("shutdown-delay-duration", Number, Serve("shutdown-delay-duration")),
    flag("shutdown-send-retry-after", Bool, None(SHUTDOWN)),
    flag("shutdown-watch-termination-grace-period", Number, None(SHUTDOWN)),
    flag("storage-backend", Scalar, Own),
    flag("storage-initialization-timeout", Number, None("requests are refused until objects are loaded")),
    flag("storage-media-type", Scalar, Serve("storage-media-type")),
    flag("strict-transport-security-directives", List, Serve("strict-transport-security-directives")),
    flag("tls-cert-file", Scalar, Serve("tls-cert-file")),
    flag("tls-cipher-suites", List, Serve("tls-cipher-suites")),
    flag("tls-curve-preferences", List, Serve("tls-curve-preferences")),
    flag("tls-min-version", Scalar, Serve("tls-min-version")),
    flag("tls-private-key-file", Scalar, Serve("tls-private-key-file")),
    flag("tls-sni-cert-key", Scalar, Each("tls-sni-cert-key")),
    flag("token-auth-file", Scalar, Serve("token-auth-file")),
    flag("tracing-config-file", Scalar, Refused),
    flag("v", Number, Serve("v")),
    flag("vmodule", List, None(LOGS)),
    flag("watch-cache", Bool, None("there is always a watch cache")),
    flag("watch-cache-sizes", List, None(CACHE)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_sorted_and_lead_to_flags_of_serve() {
        assert!(FLAGS.is_sorted_by(|one, next| one.name < next.name));
        let serve = crate::cli::kube_apiserver::serve_flags();
        for flag in FLAGS {
            if let Serve(target) = flag.effect {
                assert!(serve.iter().any(|(own, _)| own == target), "{target}");
            }
        }
    }
}
