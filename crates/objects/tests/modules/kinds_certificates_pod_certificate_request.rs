//! Issued certificates. The comparison with upstream cannot contain any, since they are valid only for minutes.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair};
use rowplane_objects::kinds::certificates::pod_certificate_request::{create, status};
use rowplane_objects::kinds::prelude::*;
use rowplane_objects::tree::{Value, json};

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

/// A request, and the status that its issued certificate leads to.
struct Issue {
    request: Value,
    status: Value,
}

impl Issue {
    /// A certificate with this lifetime in seconds, from now on.
    fn new(lifetime: u64, names: &[&str]) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        let request = params.serialize_request(&key).expect("a request");
        let name = |name: &&str| rcgen::SanType::DnsName((*name).try_into().expect("a name"));
        params.subject_alt_names = names.iter().map(name).collect();
        let now = Timestamp::now().as_second();
        let system = SystemTime::UNIX_EPOCH + Duration::from_secs(now as u64);
        params.not_before = system.into();
        params.not_after = (system + Duration::from_secs(lifetime)).into();
        let chain = params.self_signed(&key).expect("a certificate").pem();
        let time = |second: i64| Timestamp::from_second(second).expect("a time").to_string();
        let end = now + lifetime as i64;
        Self {
            request: json!({"maxExpirationSeconds": DAY, "stubPKCS10Request": STANDARD.encode(request.der())}),
            status: json!({
                "conditions": [{"type": "Issued", "status": "True", "reason": "Done", "message": "",
                    "lastTransitionTime": time(now)}],
                "certificateChain": chain,
                "notBefore": time(now),
                "notAfter": time(end),
                "beginRefreshAt": time(now + (end - now) / 2),
            }),
        }
    }

    /// The errors: fields, and the ends of messages.
    fn causes(&self) -> Vec<(String, String)> {
        let object = |status: &Value| {
            let object = json!({"spec": self.request, "status": status});
            object.as_object().expect("an object").clone()
        };
        let mut errors = Errors::at(Timestamp::now());
        status(&object(&self.status), &object(&json!({})), &mut errors);
        let end = |text: &str| text.rsplit(": ").next().unwrap_or_default().to_owned();
        errors.into_causes().into_vec().into_iter().map(|cause| (cause.field, end(&cause.message))).collect()
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.status[field] = value;
        self
    }
}

fn only(field: &str, why: &str) -> Vec<(String, String)> {
    vec![(format!("status.{field}"), why.to_owned())]
}

#[test]
fn certificates_are_those_that_were_asked_for() {
    let issue = || Issue::new(2 * HOUR as u64, &["web.example.com"]);
    assert_eq!(issue().causes(), []);
    let chain = |text: &str| issue().with("certificateChain", text.into()).causes();
    let why = "issued certificate chain must contain at least one certificate";
    assert_eq!(chain("nothing"), only("certificateChain", why));
    let other = Issue::new(2 * HOUR as u64, &[]).status["certificateChain"].clone();
    let why = "leaf certificate was not issued to the requested public key";
    assert_eq!(issue().with("certificateChain", other.clone()).causes(), only("certificateChain", why));
    // Behind the leaf there may be any certificates, but nothing else.
    let issue = issue();
    let leaf = issue.status["certificateChain"].as_str().expect("a chain").to_owned();
    let with = |more: &str| {
        Issue { request: issue.request.clone(), status: issue.status.clone() }
            .with("certificateChain", format!("{leaf}{more}").into())
    };
    assert_eq!(with(other.as_str().expect("a chain")).causes(), []);
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let why = "issued certificate chain must consist entirely of CERTFICATE PEM blocks";
    assert_eq!(with(key).causes(), only("certificateChain", why));
}

#[test]
fn times_are_those_of_the_certificate() {
    let issue = || Issue::new(2 * HOUR as u64, &[]);
    let at = |minutes: i64| {
        let then = Timestamp::now().as_second() + minutes * 60;
        Value::from(Timestamp::from_second(then).expect("a time").to_string())
    };
    let why = "must be present and in the range [notbefore+10min, notafter-10min]";
    assert_eq!(issue().with("beginRefreshAt", Value::Null).causes(), only("beginRefreshAt", why));
    let why = "must be set to the NotBefore time encoded in the leaf certificate";
    assert_eq!(issue().with("notBefore", at(-1)).causes(), only("notBefore", why));
    let why = "must be set to the NotAfter time encoded in the leaf certificate";
    assert_eq!(issue().with("notAfter", at(1)).causes(), only("notAfter", why));
    let why = "must be at least 10 minutes after status.notBefore";
    assert_eq!(issue().with("beginRefreshAt", at(9)).causes(), only("beginRefreshAt", why));
    let why = "must be at least 10 minutes before status.notAfter";
    assert_eq!(issue().with("beginRefreshAt", at(111)).causes(), only("beginRefreshAt", why));
    let short = Issue::new(HOUR as u64 - 1, &[]).causes();
    assert_eq!(short, only("certificateChain", "leaf certificate lifetime must be >= 1 hour"));
    let why = "leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)";
    assert_eq!(Issue::new(DAY as u64 + 1, &[]).causes(), only("certificateChain", why));
}

#[test]
fn names_in_certificates_have_no_empty_labels() {
    let causes = Issue::new(2 * HOUR as u64, &["a..b", ".c"]).causes();
    let whys: Vec<&str> = causes.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(
        whys,
        [
            "leaf certificate's DNSName should not contain '..'",
            "leaf certificate's DNSName should not start or end with '.'"
        ]
    );
}

/// The messages about the request of an object that is created.
fn request_causes(der: &[u8]) -> Vec<String> {
    let object = json!({"spec": {"stubPKCS10Request": STANDARD.encode(der)}});
    let mut errors = Errors::at(Timestamp::now());
    create(object.as_object().expect("an object"), &mut errors);
    let causes = errors.into_causes().into_vec().into_iter();
    causes
        .filter(|cause| cause.field == "spec.stubPKCS10Request")
        .map(|cause| cause.message.clone())
        .collect()
}

/// Made with openssl: a request with a key on P-521, once for each hash.
#[test]
fn requests_on_p521_are_signed_with_their_key() {
    for request in [P521_SHA256, P521_SHA384, P521_SHA512] {
        let der = STANDARD.decode(request).expect("base64");
        assert_eq!(request_causes(&der), [""; 0]);
        // The subject is signed, and so is the last byte of the signature's number.
        for at in [26, der.len() - 1] {
            let mut other = der.clone();
            other[at] ^= 1;
            assert_eq!(request_causes(&other), ["Invalid value: invalid signature"], "{at}");
        }
    }
}

const P521_SHA256: &str = "MIIBVjCBuwIBADAWMRQwEgYDVQQDDAtwNTIxLXNoYTI1NjCBmzAQBgcqhkjOPQIBBgUrgQQAIwOBhgAEAO2D/Jm1LZQyErlG1DGE\
    94SMDPSX5bUYXk0tw93JFZbXXoQc1FoE452w9bOT0b/oN7vLqnUjGBerYpv+9v56r+oYAVuSE0b5cxG7kWX28foo16h7fKcMmic6\
    PCbiS4sPHo7bHBlGGZKga9ljZG1XTZcZel/rdVST4gidVnCqro6/iH2zoAAwCgYIKoZIzj0EAwIDgYkAMIGFAkAqQkscHr0OJshR\
    R6pL92C12mBHmkkY7fMc6csHsl6Vr+HAbHC0auuKTGq183GDvhUUgBItizQL92uUq6aH5DPiAkEyMfTb023ocnlh5/EjGxiiBUpz\
    ebYe4TZ2NN0DHctvzjiyt1Kx7rpK6dEnQJ9fu7TNE0enaj8yYb3aBi7+DMFQJw==";

const P521_SHA384: &str = "MIIBWDCBuwIBADAWMRQwEgYDVQQDDAtwNTIxLXNoYTM4NDCBmzAQBgcqhkjOPQIBBgUrgQQAIwOBhgAEAT/QKsV+qYGjvBLhBUFB\
    scOPUNquTKClD3u+xLijWMws2i71i8fhwFeboyWnrygG7gCkBuczZKrs+trhIACofCF7AUfIDQDmDdPzvU1FkjOK1O1SBdrVxN1f\
    cxvGOsvOY+c70xz6MM2ge3YNvdD8nQtXdhwYog6/xJUMlo9Smw67+u7woAAwCgYIKoZIzj0EAwMDgYsAMIGHAkIB2LhlONMGFsmN\
    yp9CuHqPqTs/2uUCz0aO3DM5VgiuDZ5+8NIzbzHPTdfC5wJTh1Bw+7dAY5I0aFQybVPcJvpYcoYCQRWLyzF9S6LyckZ53HhbdlZy\
    /aMlhuuQCrchZZomne7EEB/bojvB8mIHizQr4RFBwXOxjBL5cMbjTB08SGP5T7zR";

const P521_SHA512: &str = "MIIBWTCBuwIBADAWMRQwEgYDVQQDDAtwNTIxLXNoYTUxMjCBmzAQBgcqhkjOPQIBBgUrgQQAIwOBhgAEAW6crIUsRrORFKDy28jZ\
    mL1TExMlbcRK04D7PL3ufZY1IYGGVpOZkLtWZ1A0l6FRPW5EmTeKNXguB8jItCC7fN0yALanIbEjYWdVQNp84EPjgGdIbEg5vczD\
    NVbtWBJBLfgZ+Lqtgus3UZIIMuRrRu7JC7iztdxWdIoWA5+zcfdlys8GoAAwCgYIKoZIzj0EAwQDgYwAMIGIAkIAqYlCNW/oKO1a\
    enzN8y0McQyIIAzRRAVNk90YCxIAO3JTH3n1L9xr4bb7MIFdeiwsBPtB1ttStXsySVKV2wKMgfICQgFPWA3OxTIu2qv4PIoETQ+4\
    tx2SvtPl3+BY+200MILaK6q9b2lVbSFKE/SC91NirG8AOBjI+p0BYhxABOQoWSNCmw==";
