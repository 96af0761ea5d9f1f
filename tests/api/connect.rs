//! Connections to kubelets, Pods and Services: section 2 of `docs/spec/cluster.md`.

mod admission;
mod logs;
pub mod proxies;
pub mod streams;

use rowplane::api::kubelets::Config;

use crate::support::kubelet::Kubelet;
use crate::support::server::{Setup, TestServer};

const POD: &str = "/api/v1/namespaces/t/pods/p";

/// A server and the Node `n`, on which the Pod `p` runs with one container, `c`.
async fn with_pod(setup: &Setup, kubelet: &Kubelet) -> TestServer {
    let server = setup.start().await;
    kubelet.join(&server, &["c"]).await;
    server
}

/// The settings with the kubelet's certificate as the only authority.
fn trusting(setup: &Setup, kubelet: &Kubelet) -> Config {
    let path = setup.file("kubelet-ca.crt");
    std::fs::write(&path, &kubelet.pem).expect("written");
    Config { authorities: Some(path), ..Config::default() }
}

/// Makes a certificate and its key in these files of the data directory. Returns the certificate.
pub fn certificate(setup: &Setup, name: &str) -> Vec<u8> {
    let key = rcgen::KeyPair::generate().expect("a key");
    let made = rcgen::CertificateParams::new(vec!["client".to_owned()]).expect("a name");
    let made = made.self_signed(&key).expect("signed");
    setup.replace(&format!("{name}.key"), &key.serialize_pem());
    setup.replace(&format!("{name}.crt"), &made.pem());
    made.der().to_vec()
}
