//! Metrics of what passes through to kubelets.

use super::{Metrics, labels_of};

impl Metrics {
    /// Counts a request for a container's output, by whether the kubelet's certificate may be anything.
    pub fn logs_asked(&self, unverified: bool) {
        let usage = if unverified { "skip_tls_allowed" } else { "enforce_tls" };
        let labels = labels_of(&[("usage", usage)]);
        self.counter("kube_apiserver_pod_logs_insecure_backend_total", labels).increment(1);
    }

    /// Counts a request for a container's output that failed by the kubelet's certificate.
    pub fn logs_not_trusted(&self) {
        self.counter("kube_apiserver_pod_logs_backend_tls_failure_total", Vec::new()).increment(1);
    }

    /// Counts a request for a stream of a Pod, which is passed on to the kubelet as it is, or in another protocol.
    pub fn stream_asked(&self, subresource: &'static str, is_translated: bool) {
        let way = if is_translated { "translated_at_apiserver" } else { "proxied_to_kubelet" };
        let labels = labels_of(&[("subresource", subresource), ("proxy_type", way)]);
        self.counter("apiserver_websocket_streaming_requests_total", labels).increment(1);
    }

    /// Counts what came of a stream that was translated.
    pub fn stream_translated(&self, status: u16) {
        let code = status.to_string();
        self.counter("apiserver_stream_translator_requests_total", labels_of(&[("code", &code)]))
            .increment(1);
    }

    /// Counts what came of a request for a tunnel.
    pub fn stream_tunnelled(&self, status: u16) {
        let code = status.to_string();
        self.counter("apiserver_stream_tunnel_requests_total", labels_of(&[("code", &code)])).increment(1);
    }
}
