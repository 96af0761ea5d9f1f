//! Verdicts of Go, made by `tests/upstream/certificates`, asked again here.

use std::collections::BTreeMap;
use std::io::Read as _;

use rowplane_values::gotext::decode_base64;
use rowplane_x509::{Certificate, CertificateRequest, Error, Options, Pool, Purpose, verify};
use serde::Deserialize;

#[derive(Deserialize)]
struct Chains {
    now: i64,
    certificates: Vec<Stored>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Stored {
    der: String,
    /// Why Go does not parse it.
    #[serde(default)]
    error: String,
}

/// A chain, the leaf first, by the numbers of certificates.
#[derive(Deserialize)]
struct Case {
    roots: Vec<usize>,
    chain: Vec<usize>,
    purpose: String,
    #[serde(default)]
    host: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Deserialize)]
struct Asked {
    pem: String,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    dns: Vec<String>,
    #[serde(default)]
    emails: Vec<String>,
    #[serde(default)]
    ips: Vec<String>,
    #[serde(default)]
    uris: Vec<String>,
    #[serde(default)]
    subject: String,
}

fn read<T: for<'a> Deserialize<'a>>(name: &str) -> T {
    let path = format!("{}/../../testdata/certificates/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the file");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("text");
    serde_json::from_str(&text).expect("JSON")
}

fn der(stored: &Stored) -> Vec<u8> {
    decode_base64(&stored.der).expect("base64")
}

fn parse_all(all: &[Stored], numbers: &[usize]) -> Result<Vec<Certificate>, Error> {
    numbers.iter().map(|number| Certificate::parse(&der(&all[*number]))).collect()
}

fn verdict(chains: &Chains, case: &Case) -> Result<(String, Vec<String>), Error> {
    let roots: Pool = parse_all(&chains.certificates, &case.roots)?.into_iter().collect();
    let shown = parse_all(&chains.certificates, &case.chain)?;
    let (leaf, others) = shown.split_first().expect("a leaf");
    let purpose = if case.purpose == "server" { Purpose::Server } else { Purpose::Client };
    let intermediates: Pool = others.iter().cloned().collect();
    let host = (purpose == Purpose::Server).then_some(case.host.as_str());
    let now = chains.now;
    verify(leaf, &Options { intermediates: &intermediates, roots: &roots, purpose, host, now })?;
    let subject = &leaf.subject_name;
    Ok((subject.common_name().to_owned(), subject.organizations().map(str::to_owned).collect()))
}

#[test]
fn certificates_are_parsed_where_go_parses_them() {
    let chains: Chains = read("chains");
    let mut wrong = BTreeMap::new();
    for (number, stored) in chains.certificates.iter().enumerate() {
        let found = Certificate::parse(&der(stored)).map(drop);
        if found.is_ok() != stored.error.is_empty() {
            wrong.insert(number, (found, &stored.error));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), chains.certificates.len());
}

#[test]
fn chains_are_verified_where_go_verifies_them() {
    let chains: Chains = read("chains");
    assert!(chains.cases.len() >= 1000);
    let mut wrong = BTreeMap::new();
    for (number, case) in chains.cases.iter().enumerate() {
        let found = verdict(&chains, case);
        let is_same = match &found {
            Ok((name, groups)) => case.error.is_empty() && *name == case.name && *groups == case.groups,
            Err(_) => !case.error.is_empty(),
        };
        if !is_same {
            wrong.insert(number, (found, &case.error, &case.name, &case.host));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), chains.cases.len());
}

#[test]
fn requests_are_read_as_go_reads_them() {
    let all: Vec<Asked> = read("requests");
    let mut wrong = BTreeMap::new();
    for (number, asked) in all.iter().enumerate() {
        let found = CertificateRequest::of_pem(asked.pem.as_bytes());
        let found = found.and_then(|request| request.check_signature().map(|()| request));
        let is_same = match &found {
            Err(_) => asked.strict || !asked.error.is_empty(),
            Ok(request) => {
                let names = &request.names;
                let addresses = names.addresses.iter().map(|one| one.to_canonical().to_string());
                asked.error.is_empty()
                    && !asked.strict
                    && request.subject.common_name() == asked.name
                    && request.subject.organizations().eq(asked.groups.iter())
                    && (&names.dns, &names.emails) == (&asked.dns, &asked.emails)
                    && addresses.eq(asked.ips.iter().cloned())
                    && names.uris.iter().map(|(uri, _)| uri).eq(asked.uris.iter())
                    && request.subject.to_der() == decode_base64(&asked.subject).expect("base64")
            }
        };
        if !is_same {
            wrong.insert(
                number,
                (found.map(|request| request.subject), &asked.error, asked.strict, &asked.pem),
            );
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), all.len());
}
