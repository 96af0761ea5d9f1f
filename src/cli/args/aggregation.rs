//! The flags about extension API servers.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::admission::Defaults;
use crate::server::config::{Aggregation, ProxyClient};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Misc flags")]
pub struct AggregationArgs {
    /// The client certificate in PEM that is shown to extension API servers, which believe this server whose request it
    /// passes on [default: one issued by a CA of its own in the data directory]
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    proxy_client_cert_file: Option<PathBuf>,

    /// The key of --proxy-client-cert-file in PEM
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    proxy_client_key_file: Option<PathBuf>,

    /// Refuses redirects by which extension API servers answer
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    aggregator_reject_forwarding_redirect: bool,
}

impl AggregationArgs {
    pub fn into_config(self, defaults: Defaults) -> Aggregation {
        let client = match self.proxy_client_cert_file.zip(self.proxy_client_key_file) {
            Some((certificate, key)) => ProxyClient::Files { certificate, key },
            None if defaults == Defaults::Upstreams => ProxyClient::None,
            None => ProxyClient::Own,
        };
        Aggregation { client, rejects_redirects: self.aggregator_reject_forwarding_redirect }
    }
}
