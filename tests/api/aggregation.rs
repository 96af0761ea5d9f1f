//! Extension API servers: section 1 of `docs/spec/cluster.md`.

mod availability;
mod discovery;
mod garbage;
mod objects;
mod passing;
mod services;

use rowplane::api::service_routes::{self, FixedAddresses, parse_fixed};

use crate::support::extension::ExtensionServer;
use crate::support::server::{Setup, TestServer};

/// A server that finds the Service `ext` in `t` at the address of an extension server, which has no APIService yet.
async fn beside(setup: &mut Setup, extension: &ExtensionServer) -> TestServer {
    let fixed = parse_fixed(&format!("t/ext={}", extension.address)).expect("an address");
    let fixed = FixedAddresses::new([fixed]);
    setup.service_routes = service_routes::Config { fixed, ..service_routes::Config::default() };
    setup.start().await
}

/// A server whose extension server is available.
async fn with_extension(setup: &mut Setup, extension: &ExtensionServer) -> TestServer {
    let server = beside(setup, extension).await;
    extension.join(&server).await;
    server
}
