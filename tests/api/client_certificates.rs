//! Client certificates as Go's `crypto/x509` judges them: what the authorities of a file say of themselves counts, and what a
//! certificate may be besides does not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P521_SHA512, SignatureAlgorithm,
};
use rowplane::Server;
use rowplane::auth::authn::FrontProxy;
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol};
use crate::support::database::Database;
use crate::support::server::Setup;

type Shape = fn(&mut CertificateParams);

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const P256: &SignatureAlgorithm = &PKCS_ECDSA_P256_SHA256;
const P521: &SignatureAlgorithm = &PKCS_ECDSA_P521_SHA512;

/// A certificate and its key.
struct Made {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

fn params(name: &str, shape: Shape) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, "team");
    shape(&mut params);
    params
}

/// A certificate that its own key has signed.
fn alone(name: &str, kind: &'static SignatureAlgorithm, shape: Shape) -> Made {
    let (params, key) = (params(name, shape), KeyPair::generate_for(kind).expect("a key"));
    let pem = params.self_signed(&key).expect("a certificate").pem();
    Made { params, key, pem }
}

impl Made {
    /// A certificate that this one's key has signed.
    fn sign(&self, name: &str, kind: &'static SignatureAlgorithm, shape: Shape) -> Made {
        let (params, key) = (params(name, shape), KeyPair::generate_for(kind).expect("a key"));
        let issuer = Issuer::from_params(&self.params, &self.key);
        let pem = params.signed_by(&key, &issuer).expect("a certificate").pem();
        Made { params, key, pem }
    }

    /// A client that shows the certificate.
    fn client(&self, setup: &Setup) -> Client {
        let mut kubeconfig = setup.kubeconfig();
        let user = kubeconfig.auth_infos[0].auth_info.as_mut().expect("a user");
        user.client_certificate_data = Some(STANDARD.encode(&self.pem));
        user.client_key_data = Some(STANDARD.encode(self.key.serialize_pem()).into());
        Client::of_certificate(&kubeconfig, Protocol::Any)
    }
}

fn ca(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
}

fn client(params: &mut CertificateParams) {
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
}

/// A server that trusts these authorities.
async fn trusting(setup: &mut Setup, authorities: &[&Made]) -> Server {
    let file = setup.file("clients.crt");
    let text: String = authorities.iter().map(|authority| authority.pem.as_str()).collect();
    std::fs::write(&file, &text).expect("write");
    setup.certificates.client_ca_file = Some(file.clone());
    let server = setup.start_without_admin().await;
    // A kubeconfig is made once the server's own authority is trusted, too.
    let own = std::fs::read_to_string(setup.file("pki/ca.crt")).expect("a CA");
    std::fs::write(&file, text + &own).expect("write");
    server.reload_credentials().await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_name_users_whatever_else_they_are_good_for() {
    let authority = alone("ca", P256, ca);
    let on_p521 = alone("p521-ca", P521, ca);
    let itself = alone("itself", P256, ca);
    let shown = [
        authority.sign("plain", P256, client),
        authority.sign("without-purpose", P256, |_| {}),
        authority.sign("any", P256, |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any]),
        authority.sign("is-ca", P256, |params| (ca(params), client(params)).1),
        authority.sign("p521", P521, client),
        on_p521.sign("of-p521-ca", P256, client),
        authority.sign("policy", P256, |params| {
            let policies = vec![0x30, 7, 0x30, 5, 6, 3, 0x2a, 3, 4];
            let mut policies = CustomExtension::from_oid_content(&[2, 5, 29, 32], policies);
            policies.set_criticality(true);
            params.custom_extensions.push(policies);
        }),
        authority.sign("bmp", P256, |params| {
            let name = DnValue::BmpString("bmp".try_into().expect("a string"));
            params.distinguished_name.push(DnType::CommonName, name);
        }),
        authority.sign("t61", P256, |params| {
            let name = DnValue::TeletexString("t61".try_into().expect("a string"));
            params.distinguished_name.push(DnType::CommonName, name);
        }),
    ];
    let mut setup = Setup::new(Database::memory());
    let server = trusting(&mut setup, &[&authority, &on_p521, &itself]).await;
    let names =
        ["plain", "without-purpose", "any", "is-ca", "p521", "of-p521-ca", "policy", "bmp", "t61", "itself"];
    for (name, shown) in names.iter().zip(shown.iter().chain([&itself])) {
        let user = shown.client(&setup).post(WHO, &json!({})).await.expect(201)["status"]["userInfo"].clone();
        assert_eq!(user["username"], *name);
        assert_eq!(user["groups"], json!(["team", "system:authenticated"]), "{name}");
    }
    server.stop().await;
}

/// An authority is not believed for standing in a file. Above all, who holds the key of a certificate that is trusted as
/// one user's signs no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_that_may_not_sign_for_clients_name_nobody() {
    let shapes: [(&str, Shape); 6] = [
        ("ended", |params| {
            ca(params);
            params.not_after = rcgen::date_time_ymd(2025, 1, 1);
        }),
        ("pinned", |_| {}),
        ("no-ca", |params| params.is_ca = IsCa::ExplicitNoCa),
        ("no-signer", |params| {
            ca(params);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        }),
        ("for-servers", |params| {
            ca(params);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        }),
        ("good", ca),
    ];
    let authorities = shapes.map(|(name, shape)| alone(name, P256, shape));
    let mut setup = Setup::new(Database::memory());
    let server = trusting(&mut setup, &authorities.each_ref()).await;
    for (authority, (name, _)) in authorities.iter().zip(shapes) {
        let answer =
            authority.sign(&format!("of-{name}"), P256, client).client(&setup).post(WHO, &json!({})).await;
        match name {
            "good" => assert_eq!(answer.expect(201)["status"]["userInfo"]["username"], "of-good"),
            _ => answer.fails(401, "Unauthorized", "Unauthorized", Value::Null),
        }
    }
    // What is pinned is believed itself, for what it says that it is for.
    let pinned = authorities[1].client(&setup).post(WHO, &json!({})).await.expect(201);
    assert_eq!(pinned["status"]["userInfo"]["username"], "pinned");
    let for_servers = authorities[4].client(&setup).post(WHO, &json!({})).await;
    for_servers.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    server.stop().await;
}

/// `apiserver_client_certificate_expiration_seconds` warns of the client's own certificate, though its authority may end first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metric_counts_until_the_own_certificate_ends() {
    let authority = alone("soon", P256, |params| {
        ca(params);
        let end = jiff::Zoned::now().date().saturating_add(jiff::SignedDuration::from_hours(48));
        params.not_after = rcgen::date_time_ymd(end.year().into(), end.month() as u8, end.day() as u8);
    });
    let master = authority.sign("master", P256, |params| {
        client(params);
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    });
    let mut setup = Setup::new(Database::memory());
    let server = trusting(&mut setup, &[&authority]).await;
    let text = master.client(&setup).get("/metrics").await.text();
    let buckets = text
        .lines()
        .filter_map(|line| line.strip_prefix("apiserver_client_certificate_expiration_seconds_bucket"));
    let counts: Vec<&str> = buckets.filter_map(|bucket| bucket.rsplit(' ').next()).collect();
    let (all, within) = counts.split_last().expect("buckets");
    assert!(*all != "0" && within.iter().all(|count| *count == "0"), "{counts:?}");
    server.stop().await;
}

/// The same holds for those who speak for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn front_proxies_are_judged_alike() {
    let names = |list: &[&str]| list.iter().map(|name| name.parse().expect("a name")).collect();
    let (pinned, authority) = (alone("pinned", P256, |_| {}), alone("proxies", P256, ca));
    let mut setup = Setup::new(Database::memory());
    let file = setup.file("proxies.crt");
    std::fs::write(&file, [pinned.pem.as_str(), &authority.pem].concat()).expect("write");
    setup.certificates.front_proxy_ca_file = Some(file);
    setup.authentication.front_proxy = FrontProxy {
        username_headers: names(&["X-Remote-User"]),
        allowed_names: vec!["proxy".to_owned()],
        ..FrontProxy::default()
    };
    let server = setup.start().await;
    let ask = |shown: &Made| shown.client(&setup).post(WHO, &json!({})).header("x-remote-user", "jane");
    let jane = ask(&authority.sign("proxy", P521, client)).await.expect(201);
    assert_eq!(jane["status"]["userInfo"]["username"], "jane");
    ask(&pinned.sign("proxy", P256, client)).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    server.stop().await;
}
