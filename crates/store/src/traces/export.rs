//! Sending spans to a collector, in batches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::config::Endpoint;
use super::messages::{
    ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue, Resource, ResourceSpans, Scope,
    ScopeSpans, Span,
};
use crate::egress::{Egress, Network};
use crate::grpc::{self, CallError};
use crate::metrics::Metrics;
use crate::runtime::Runtime;

const SERVICE: &str = "opentelemetry.proto.collector.trace.v1.TraceService";
/// Spans of a batch, and how long one may take: OpenTelemetry's defaults.
const LARGEST: usize = 512;
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two batches that are not full.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last batch of a server that ends may take.
const LAST: Duration = Duration::from_secs(2);

struct Exporter {
    spans: mpsc::Receiver<Span>,
    endpoint: Endpoint,
    egress: Egress,
    resource: Resource,
    metrics: Arc<Metrics>,
    /// Whether the batch before could not be sent, so that this is told once.
    has_failed: bool,
}

/// Sends the spans of a queue as long as the server runs.
pub(super) fn start(
    endpoint: &Endpoint,
    spans: mpsc::Receiver<Span>,
    attributes: Vec<KeyValue>,
    runtime: &Runtime,
) {
    let mut exporter = Exporter {
        spans,
        endpoint: endpoint.clone(),
        egress: runtime.egresses.to(Network::ControlPlane),
        resource: Resource { attributes },
        metrics: runtime.metrics.clone(),
        has_failed: false,
    };
    let tasks = runtime.tasks.clone();
    runtime.tasks.run_to_end("traces", async move {
        tokio::select! {
            () = exporter.run() => {}
            () = tasks.stopping() => exporter.send_rest().await,
        }
    });
}

impl Exporter {
    async fn run(&mut self) {
        let mut batch = Vec::new();
        loop {
            // Spans are made as long as the server lives.
            if self.spans.recv_many(&mut batch, LARGEST).await == 0 {
                return std::future::pending().await;
            }
            self.send(std::mem::take(&mut batch), TIMEOUT).await;
            if self.spans.len() < LARGEST {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn send_rest(&mut self) {
        self.spans.close();
        let mut batch = Vec::new();
        if self.spans.recv_many(&mut batch, LARGEST).await > 0 {
            self.send(batch, LAST).await;
        }
    }

    async fn send(&mut self, spans: Vec<Span>, timeout: Duration) {
        let number = spans.len() as u64;
        let scope = Scope { name: "rowplane".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        let resource_spans = vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans }];
        let request = ExportTraceServiceRequest { resource_spans };
        let sent = tokio::time::timeout(timeout, self.call(request)).await;
        match sent.unwrap_or_else(|_| Err("context deadline exceeded".to_owned())) {
            Ok(answer) => {
                let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
                let rejected = u64::try_from(rejected).unwrap_or_default().min(number);
                self.metrics.spans_ended("sent", number - rejected);
                self.metrics.spans_ended("failed", rejected);
                self.has_failed = false;
            }
            Err(why) => {
                self.metrics.spans_ended("failed", number);
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(why, "spans of traces cannot be sent, and are dropped");
                }
            }
        }
    }

    async fn call(&self, request: ExportTraceServiceRequest) -> Result<ExportTraceServiceResponse, String> {
        let told = |error: CallError| error.to_string();
        match &self.endpoint {
            Endpoint::Tcp(address) => {
                let stream = self.egress.connect(address, &[]).await?;
                grpc::unary(stream, SERVICE, "Export", request).await.map_err(told)
            }
            Endpoint::Unix(address) => {
                let stream = grpc::connect(address).await.map_err(|error| error.to_string())?;
                grpc::unary(stream, SERVICE, "Export", request).await.map_err(told)
            }
        }
    }
}
