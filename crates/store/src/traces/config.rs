//! The file of `--tracing-config-file` (`TracingConfiguration`), checked as upstream's `ValidateTracingConfiguration` does.

use std::path::Path;

use crate::causes::{Cause, aggregate};
use crate::config_file;
use crate::egress::words;
use crate::gotext::quote;

const KIND: &str = "TracingConfiguration";
const TYPES: [(&str, &str); 3] = [
    ("apiserver.config.k8s.io/v1", KIND),
    ("apiserver.config.k8s.io/v1beta1", KIND),
    ("apiserver.config.k8s.io/v1alpha1", KIND),
];
/// The usual address of collectors.
const DEFAULT_ENDPOINT: &str = "localhost:4317";
const MILLION: i64 = 1_000_000;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub endpoint: Endpoint,
    /// The share of requests that are sampled without a parent, per million.
    pub rate: u32,
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `host:port`.
    Tcp(String),
    /// A path, or `@name` for an abstract socket.
    Unix(String),
}

/// Reads the file. The error is upstream's.
pub fn load(path: &Path) -> Result<Configuration, String> {
    let text = std::fs::read(path).map_err(|error| {
        let (shown, why) = (path.display(), words::system(&error));
        let path = quote(&shown.to_string());
        format!("failed to read tracing config: unable to read tracing configuration from {path}: open {shown}: {why}")
    })?;
    parse(&text)
}

/// Reads the text of the file.
pub fn parse(text: &[u8]) -> Result<Configuration, String> {
    let read = config_file::read(text, &TYPES, |reader, root| {
        reader.known(root, "", &["apiVersion", "kind", "endpoint", "samplingRatePerMillion"]);
        let has_endpoint = root.get("endpoint").is_some_and(|value| !value.is_null());
        let endpoint = reader.text(root.get("endpoint"), "endpoint", KIND);
        let rate = root.get("samplingRatePerMillion").filter(|value| !value.is_null());
        let number = rate.and_then(|value| value.as_i64());
        if let (Some(value), None) = (rate, number) {
            reader.mistyped(value, "TracingConfiguration.samplingRatePerMillion", (KIND, "int32"));
        }
        (has_endpoint.then_some(endpoint), number.unwrap_or_default())
    });
    let (endpoint, rate) = read.map_err(|why| {
        format!("failed to read tracing config: unable to decode tracing configuration data: {why}")
    })?;
    let mut causes = Vec::new();
    if rate < 0 {
        causes.push(Cause::invalid("samplingRatePerMillion", rate, "sampling rate must be positive"));
    }
    if rate > MILLION {
        let why = "sampling rate per million must be less than or equal to one million";
        causes.push(Cause::invalid("samplingRatePerMillion", rate, why));
    }
    let endpoint = Endpoint::parse(endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT));
    match (endpoint, &*causes) {
        (Ok(endpoint), []) => Ok(Configuration { endpoint, rate: u32::try_from(rate).unwrap_or_default() }),
        (endpoint, _) => {
            causes.extend(endpoint.err());
            Err(format!("failed to validate tracing configuration: {}", aggregate(&causes)))
        }
    }
}

impl Endpoint {
    /// Reads a target of gRPC: an address, or a URL of one of three schemes.
    fn parse(text: &str) -> Result<Self, Cause> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Tcp(text.to_owned()));
        };
        match scheme {
            // What stands before the slash is the server that looks the name up; the system's does.
            "dns" => Ok(Self::Tcp(rest.split_once('/').map_or(rest, |(_, name)| name).to_owned())),
            "unix" => Ok(Self::Unix(rest.to_owned())),
            "unix-abstract" => Ok(Self::Unix(format!("@{rest}"))),
            other => {
                let why = format!(
                    "unsupported scheme: {other}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
                );
                Err(Cause::invalid("endpoint", quote(text), &why))
            }
        }
    }
}
