//! Tests of `auth::signing`.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType};
use rowplane_access::auth::signing::{
    API_CLIENTS, Authority, KUBELET_CLIENTS, KUBELET_SERVERS, LEGACY, SigningRequest,
};
use rowplane_values::gotext::encode_base64;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// A request with these organizations and alternative names, in base64.
fn request(name: &str, organizations: &[&str], names: Vec<SanType>) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    for organization in organizations {
        params.distinguished_name.push(DnType::OrganizationName, *organization);
    }
    params.subject_alt_names = names;
    let key = KeyPair::generate().expect("a key");
    let pem = params.serialize_request(&key).expect("a request").pem().expect("PEM");
    encode_base64(pem.as_bytes())
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().expect("a name"))
}

fn fits(signer: &str, name: &str, organization: &str, names: Vec<SanType>, usages: &[&str]) -> String {
    let request = SigningRequest::of_base64(&request(name, &[organization], names)).expect("a request");
    request.fits(signer, usages).err().unwrap_or_default()
}

#[test]
fn kubelets_get_what_is_theirs() {
    let client = ["key encipherment", "client auth", "digital signature"];
    let (node, nodes) = ("system:node:n", "system:nodes");
    assert_eq!(fits(KUBELET_CLIENTS, node, nodes, vec![], &client), "");
    assert_eq!(fits(KUBELET_CLIENTS, node, nodes, vec![], &client[1..]), "");
    for (name, organization, names, usages, why) in [
        (node, "x", vec![], &client[..], "subject organization is not system:nodes"),
        ("n", nodes, vec![], &client[..], "subject common name does not begin with system:node:"),
        (node, nodes, vec![dns("a")], &client[..], "DNS subjectAltNames are not allowed"),
        (
            node,
            nodes,
            vec![],
            &["client auth"][..],
            "usages did not match [client auth digital signature key encipherment]",
        ),
    ] {
        assert_eq!(fits(KUBELET_CLIENTS, name, organization, names, usages), why);
    }
    let server = ["server auth", "digital signature"];
    assert_eq!(fits(KUBELET_SERVERS, node, nodes, vec![dns("a")], &server), "");
    assert_eq!(fits(KUBELET_SERVERS, node, nodes, vec![], &server), "DNS or IP subjectAltName is required");
    let mail = SanType::Rfc822Name("a@b".try_into().expect("a name"));
    let told = fits(KUBELET_SERVERS, node, nodes, vec![dns("a"), mail], &server);
    assert_eq!(told, "Email subjectAltNames are not allowed");
    let told = fits(API_CLIENTS, "jane", "devs", vec![], &["client auth", "server auth"]);
    assert_eq!(told, "invalid usage for client certificate: server auth");
    let told = fits(API_CLIENTS, "jane", "devs", vec![], &["digital signature"]);
    assert_eq!(told, "missing required usage for client certificate: client auth");
    assert_eq!(fits(LEGACY, "anybody", "x", vec![], &["any"]), "");
}

/// A CA with its certificate.
fn authority() -> (Authority, rcgen::Certificate) {
    let dir = tempfile::tempdir().expect("a directory");
    let (certificate, key) = (dir.path().join("ca.crt"), dir.path().join("ca.key"));
    let ca_key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "the CA");
    let ca = params.self_signed(&ca_key).expect("signed");
    std::fs::write(&certificate, ca.pem()).expect("write");
    std::fs::write(&key, ca_key.serialize_pem()).expect("write");
    (Authority::load(&certificate, &key).expect("an authority"), ca)
}

#[test]
fn certificates_are_as_asked_for_and_verify() {
    let (authority, ca) = authority();
    let text = request("jane", &["devs"], vec![dns("a.example")]);
    let asked = SigningRequest::of_base64(&text).expect("a request");
    let now = SystemTime::now();
    let lifetime = Duration::from_secs(3600);
    let made = authority.sign(&asked, &["client auth", "digital signature"], lifetime, now).expect("signed");
    let pem = pem::parse(made).expect("PEM");
    let (rest, made) = X509Certificate::from_der(pem.contents()).expect("a certificate");
    assert!(rest.is_empty());
    let (_, ca) = X509Certificate::from_der(ca.der()).expect("a certificate");
    made.verify_signature(Some(ca.public_key())).expect("the CA has signed it");
    assert_eq!(made.issuer().as_raw(), ca.subject().as_raw());
    assert_eq!(made.subject().to_string(), "O=devs, CN=jane");
    let validity = made.validity().not_after.timestamp() - made.validity().not_before.timestamp();
    assert_eq!(validity, 3600 + 300, "it is backdated");
    let usage = made.key_usage().expect("read").expect("there").value;
    assert!(usage.digital_signature() && !usage.key_encipherment() && !usage.key_cert_sign());
    let purposes = made.extended_key_usage().expect("read").expect("there").value;
    assert!(purposes.client_auth && !purposes.server_auth && !purposes.any);
    assert!(!made.is_ca());
    let names = made.subject_alternative_name().expect("read").expect("there").value;
    assert_eq!(names.general_names, [GeneralName::DNSName("a.example")]);
    let after = now + Duration::from_secs(100 * 365 * 24 * 3600 * 30);
    assert_eq!(authority.sign(&asked, &[], lifetime, after), Err("the signer has expired".to_owned()));
    let why = authority.sign(&asked, &["x"], lifetime, now).expect_err("refused");
    assert_eq!(why, "unrecognized usage values: [\"x\"]");
}

/// Attributes that nobody has checked are not signed: names of other sorts, attributes that are no part of a name here.
#[test]
fn a_certificate_holds_what_was_checked_and_no_more() {
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, rcgen::DnValue::BmpString("jane".try_into().expect("a string")));
    params
        .distinguished_name
        .push(DnType::OrganizationName, rcgen::DnValue::TeletexString("devs".try_into().expect("a string")));
    params.distinguished_name.push(uid, "root");
    let other = SanType::OtherName((vec![1, 3, 6, 1, 4, 1, 311, 20, 2, 3], "root@example".into()));
    params.subject_alt_names = vec![dns("a.example"), other];
    let key = KeyPair::generate().expect("a key");
    let pem = params.serialize_request(&key).expect("a request").pem().expect("PEM");
    let asked = SigningRequest::of_base64(&encode_base64(pem.as_bytes())).expect("a request");
    assert!(asked.subject().organizations().eq(["devs"]), "Go reads these strings, too");
    let (authority, _) = authority();
    let made = authority.sign(&asked, &["client auth"], Duration::from_secs(3600), SystemTime::now());
    let pem = pem::parse(made.expect("signed")).expect("PEM");
    let (_, made) = X509Certificate::from_der(pem.contents()).expect("a certificate");
    assert_eq!(made.subject().to_string(), "O=devs, CN=jane");
    let names = made.subject_alternative_name().expect("read").expect("there").value;
    assert_eq!(names.general_names, [GeneralName::DNSName("a.example")]);
}
