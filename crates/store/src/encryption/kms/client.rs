//! Calls of a key management service.

use std::time::Duration;

use super::messages::{DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusResponse};
use crate::grpc;

pub use crate::grpc::CallError;

const SERVICE: &str = "v2.KeyManagementService";

/// A service at an address.
#[derive(Debug)]
pub struct Client {
    grpc: grpc::Client,
    timeout: Duration,
}

impl Client {
    /// `endpoint` is `unix:///path`, or `unix:///@name` for an abstract socket.
    pub fn new(endpoint: &str, timeout: Duration) -> Self {
        Self { grpc: grpc::Client::new(address(endpoint), SERVICE), timeout }
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub async fn status(&self) -> (Result<StatusResponse, CallError>, Duration) {
        self.grpc.call("Status", (), self.timeout).await
    }

    pub async fn encrypt(&self, request: EncryptRequest) -> (Result<EncryptResponse, CallError>, Duration) {
        self.grpc.call("Encrypt", request, self.timeout).await
    }

    pub async fn decrypt(&self, request: DecryptRequest) -> (Result<DecryptResponse, CallError>, Duration) {
        self.grpc.call("Decrypt", request, self.timeout).await
    }
}

fn address(endpoint: &str) -> String {
    let rest = endpoint.strip_prefix("unix:").unwrap_or(endpoint);
    // An URL of two slashes has an authority, which means nothing here.
    let path = rest.strip_prefix("//").map_or(rest, |rest| rest.find('/').map_or("", |at| &rest[at..]));
    let name = path.strip_prefix("/@").map(|name| format!("@{name}"));
    name.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_paths_or_abstract_names() {
        for (endpoint, wanted) in
            [("unix:///run/kms.sock", "/run/kms.sock"), ("unix:///@kms", "@kms"), ("unix:/run/a", "/run/a")]
        {
            assert_eq!(address(endpoint), wanted);
        }
    }
}
