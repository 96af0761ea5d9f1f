//! The content of the directory after each start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use rowplane_access::auth::authn::user_of_certificate;
use rowplane_access::auth::jwt::keys::SigningKey;
use rowplane_access::auth::pki::{
    Admin, Error, Kubeconfig, NamedFiles, Overrides, Pki, ServingNames, Sources, client_url,
};
use rowplane_x509::Certificate;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tempfile::TempDir;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn names(bind: &str) -> ServingNames {
    ServingNames { bind_address: bind.parse().unwrap(), hostname: Some("host-1".into()), extra: Vec::new() }
}

fn sources(dir: &TempDir, bind: &str, overrides: Overrides) -> Sources {
    Sources { dir: dir.path().join("pki"), names: names(bind), overrides }
}

fn ensure_at(dir: &TempDir, bind: &str, now: SystemTime) -> Result<Pki, Error> {
    sources(dir, bind, Overrides::default()).ensure(now)
}

fn ensure(dir: &TempDir, bind: &str) -> Result<Pki, Error> {
    ensure_at(dir, bind, SystemTime::now())
}

fn admin(pki: &Pki) -> &Admin {
    pki.admin.as_ref().unwrap()
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

fn read(dir: &TempDir, name: &str) -> Vec<u8> {
    fs::read(dir.path().join("pki").join(name)).unwrap()
}

#[test]
fn keys_are_private_and_nothing_else_is_left() {
    let dir = TempDir::new().unwrap();
    ensure(&dir, "127.0.0.1").unwrap();
    let mut found: Vec<(String, u32)> = fs::read_dir(dir.path().join("pki"))
        .unwrap()
        .map(Result::unwrap)
        .map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().permissions().mode() & 0o077))
        .collect();
    found.sort();
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key"]);
    assert!(found.iter().filter(|(name, _)| name.ends_with(".key")).all(|(_, others)| *others == 0));
}

#[test]
fn a_second_start_finds_everything_as_it_was() {
    let dir = TempDir::new().unwrap();
    let first = ensure(&dir, "127.0.0.1").unwrap();
    let second = ensure(&dir, "127.0.0.1").unwrap();
    assert_eq!(first.serving.chain, second.serving.chain);
    assert_eq!(admin(&first).certificate, admin(&second).certificate);
    assert_eq!(admin(&first).server_authority, admin(&second).server_authority);
}

/// Clients of Java (fabric8) know a key on a curve by these words alone.
#[test]
fn an_administrators_key_has_the_words_that_java_clients_know() {
    let dir = TempDir::new().unwrap();
    let first = admin(&ensure(&dir, "127.0.0.1").unwrap()).key.clone();
    assert!(first.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{first}");
    let file = dir.path().join("pki/admin.key");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
    // The curve is named in it, so that it can be read without the certificate.
    let block = pem::parse(&first).unwrap();
    assert!(SigningKey::of_pem(first.as_bytes()).is_ok());
    let curve = [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    assert!(block.contents().windows(curve.len()).any(|part| part == curve));
    // A key of before is kept, and shown in these words.
    let old = rcgen::KeyPair::generate().unwrap().serialize_pem();
    assert!(old.starts_with("-----BEGIN PRIVATE KEY-----"));
    std::fs::write(&file, &old).unwrap();
    let shown = admin(&ensure(&dir, "127.0.0.1").unwrap()).key.clone();
    assert!(shown.starts_with("-----BEGIN EC PRIVATE KEY-----\n") && shown != first, "{shown}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), old);
    let key = SigningKey::of_pem(shown.as_bytes()).unwrap();
    let same = SigningKey::of_pem(old.as_bytes()).unwrap();
    assert_eq!(key.public, same.public);
}

#[test]
fn the_admin_is_a_master() {
    let dir = TempDir::new().unwrap();
    let pki = ensure(&dir, "127.0.0.1").unwrap();
    let chain = certificates(&admin(&pki).certificate);
    let user = user_of_certificate(&Certificate::parse(&chain[0]).unwrap()).unwrap().unwrap();
    assert_eq!(user.name, "kubernetes-admin");
    assert!(user.is_in("system:masters"));
}

#[test]
fn a_new_bind_address_renews_only_the_serving_certificate() {
    let dir = TempDir::new().unwrap();
    let before = ensure(&dir, "127.0.0.1").unwrap();
    let (key, ca) = (read(&dir, "apiserver.key"), read(&dir, "ca.crt"));
    let after = ensure(&dir, "192.0.2.7").unwrap();
    assert_ne!(before.serving.chain, after.serving.chain);
    assert_eq!(admin(&before).certificate, admin(&after).certificate);
    assert_eq!((key, ca), (read(&dir, "apiserver.key"), read(&dir, "ca.crt")));
    assert_eq!(ensure(&dir, "192.0.2.7").unwrap().serving.chain, after.serving.chain);
}

#[test]
fn certificates_near_their_end_are_renewed_under_the_same_ca() {
    let dir = TempDir::new().unwrap();
    let before = ensure(&dir, "127.0.0.1").unwrap();
    let early = ensure_at(&dir, "127.0.0.1", SystemTime::now() + 200 * DAY).unwrap();
    assert_eq!(before.serving.chain, early.serving.chain);
    let late = ensure_at(&dir, "127.0.0.1", SystemTime::now() + 300 * DAY).unwrap();
    assert_ne!(before.serving.chain, late.serving.chain);
    assert_ne!(admin(&before).certificate, admin(&late).certificate);
    assert_eq!(admin(&before).server_authority, admin(&late).server_authority);
}

#[test]
fn another_ca_renews_what_the_old_one_issued() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let before = ensure(&dir, "127.0.0.1").unwrap();
    ensure(&other, "127.0.0.1").unwrap();
    for name in ["ca.crt", "ca.key"] {
        fs::write(dir.path().join("pki").join(name), read(&other, name)).unwrap();
    }
    let after = ensure(&dir, "127.0.0.1").unwrap();
    assert_ne!(admin(&before).certificate, admin(&after).certificate);
    assert_eq!(
        admin(&after).server_authority.trim_end(),
        String::from_utf8(read(&other, "ca.crt")).unwrap().trim_end()
    );
}

#[test]
fn a_lost_certificate_is_made_again_from_its_key() {
    let dir = TempDir::new().unwrap();
    ensure(&dir, "127.0.0.1").unwrap();
    let key = read(&dir, "ca.key");
    for name in ["ca.crt", "apiserver.crt"] {
        fs::remove_file(dir.path().join("pki").join(name)).unwrap();
    }
    ensure(&dir, "127.0.0.1").unwrap();
    assert_eq!(key, read(&dir, "ca.key"));
}

#[test]
fn corrupt_files_are_named() {
    for name in ["ca.key", "ca.crt", "admin.key", "apiserver.key"] {
        let dir = TempDir::new().unwrap();
        ensure(&dir, "127.0.0.1").unwrap();
        let path = dir.path().join("pki").join(name);
        for garbage in [&b"garbage"[..], b"", b"\xff\xfe"] {
            fs::write(&path, garbage).unwrap();
            let text = ensure(&dir, "127.0.0.1").unwrap_err().to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }
}

#[test]
fn a_key_that_is_not_the_certificates_is_refused() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    ensure(&dir, "127.0.0.1").unwrap();
    ensure(&other, "127.0.0.1").unwrap();
    fs::write(dir.path().join("pki/ca.key"), read(&other, "ca.key")).unwrap();
    assert!(matches!(ensure(&dir, "127.0.0.1"), Err(Error::Mismatch { .. })));
}

#[test]
fn a_ca_of_ours_signs_no_other() {
    let dir = TempDir::new().unwrap();
    let pki = ensure(&dir, "127.0.0.1").unwrap();
    let (_, ca) = X509Certificate::from_der(&pki.client_roots[0]).unwrap();
    let constraints = ca.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, Some(0));
}

#[test]
fn with_files_of_ones_own_no_ca_is_made_and_nothing_of_it_is_trusted() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let foreign = ensure(&other, "127.0.0.1").unwrap();
    let file = |name: &str| other.path().join("pki").join(name);
    let clients = Overrides { client_ca_file: Some(file("ca.crt")), ..Overrides::default() };
    let serving = Some((file("apiserver.crt"), file("apiserver.key")));
    let both = Overrides { serving: serving.clone(), ..clients.clone() };
    let now = SystemTime::now();

    let pki = sources(&dir, "127.0.0.1", both).ensure(now).unwrap();
    assert_eq!((&pki.serving.chain, &pki.client_roots), (&foreign.serving.chain, &foreign.client_roots));
    assert_eq!(pki.admin, None);
    assert!(!dir.path().join("pki").exists());

    // The server's own serving certificate needs the own CA, though it may not sign clients.
    let pki = sources(&dir, "127.0.0.1", clients).ensure(now).unwrap();
    assert_eq!((&pki.client_roots, &pki.admin), (&foreign.client_roots, &None));
    assert!(!dir.path().join("pki/admin.key").exists());

    let pki = sources(&dir, "127.0.0.1", Overrides { serving, ..Overrides::default() }).ensure(now).unwrap();
    assert_eq!((&pki.serving.chain, pki.client_roots.len()), (&foreign.serving.chain, 1));
    let shown = String::from_utf8(fs::read(file("apiserver.crt")).unwrap()).unwrap();
    assert!(admin(&pki).server_authority.contains(shown.trim_end()));
}

#[test]
fn our_ca_is_trusted_beside_others_where_their_file_names_it() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    ensure(&dir, "127.0.0.1").unwrap();
    ensure(&other, "127.0.0.1").unwrap();
    let both = dir.path().join("clients.crt");
    fs::write(&both, [read(&other, "ca.crt"), read(&dir, "ca.crt")].concat()).unwrap();
    let overrides = Overrides { client_ca_file: Some(both), ..Overrides::default() };
    let pki = sources(&dir, "127.0.0.1", overrides).ensure(SystemTime::now()).unwrap();
    assert_eq!((pki.client_roots.len(), pki.admin.is_some()), (2, true));
}

#[test]
fn files_that_others_write_are_all_watched() {
    let path = |name: &str| std::path::PathBuf::from(name);
    let named = NamedFiles { certificate: path("c"), key: path("d"), names: Vec::new() };
    let overrides = Overrides {
        client_ca_file: Some(path("e")),
        serving: Some((path("a"), path("b"))),
        front_proxy_ca_file: Some(path("f")),
        named: vec![named],
        published: Some(path("written")),
    };
    assert_eq!(overrides.files().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f"].map(path).each_ref());
    assert_eq!(Overrides::default().files().count(), 0);
}

#[test]
fn a_server_that_runs_renews_its_own_certificates_and_makes_no_new_ca() {
    let dir = TempDir::new().unwrap();
    let before = ensure(&dir, "127.0.0.1").unwrap();
    let running = sources(&dir, "127.0.0.1", Overrides::default());
    let late = SystemTime::now() + 300 * DAY;
    let serving = running.serving(late).unwrap();
    assert_ne!(serving, before.serving);
    assert!(before.serving.own_until.unwrap() > late && serving.own_until > before.serving.own_until);
    let renewed = running.admin(running.server_authority(&serving).unwrap(), late).unwrap().unwrap();
    assert_ne!(renewed.certificate, admin(&before).certificate);
    assert_eq!(
        (&renewed.key, &renewed.server_authority),
        (&admin(&before).key, &admin(&before).server_authority)
    );
    assert_eq!(running.client_roots(late).unwrap(), before.client_roots);
    fs::remove_file(dir.path().join("pki/ca.crt")).unwrap();
    assert!(matches!(running.serving(late), Err(Error::Read { .. })));
    assert!(!dir.path().join("pki/ca.crt").exists());
}

#[test]
fn the_url_names_an_address_that_can_be_dialled() {
    let url = |bound: &str| client_url(bound.parse().unwrap());
    assert_eq!(url("0.0.0.0:6443"), "https://127.0.0.1:6443");
    assert_eq!(url("[::]:1"), "https://[::1]:1");
    assert_eq!(url("192.0.2.7:6443"), "https://192.0.2.7:6443");
}

#[test]
fn the_kubeconfig_is_private_and_goes_only_when_outdated() {
    let dir = TempDir::new().unwrap();
    let pki = ensure(&dir, "127.0.0.1").unwrap();
    let path = dir.path().join("admin.kubeconfig");
    let old = Kubeconfig::of(admin(&pki), "https://127.0.0.1:1");
    let new = Kubeconfig::of(admin(&pki), "https://127.0.0.1:2");
    old.write(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    Kubeconfig::remove_outdated(&path, Some(&old)).unwrap();
    assert!(path.exists());
    Kubeconfig::remove_outdated(&path, Some(&new)).unwrap();
    assert!(!path.exists());
    new.write(&path).unwrap();
    Kubeconfig::remove_outdated(&path, None).unwrap();
    assert!(!path.exists());
    Kubeconfig::remove_outdated(&path, None).unwrap();
}

#[test]
fn the_own_serving_certificate_is_shown_with_its_ca_where_clients_look_for_it() {
    let (dir, shown) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let overrides = Overrides { published: Some(shown.path().to_owned()), ..Overrides::default() };
    let sources = sources(&dir, "127.0.0.1", overrides);
    let pki = sources.ensure(SystemTime::now()).unwrap();
    let file = |name: &str| fs::read_to_string(shown.path().join(name)).unwrap();
    let chain = certificates(&file("apiserver.crt"));
    assert_eq!(chain, [pki.serving.chain[0].clone(), pki.client_roots[0].clone()]);
    assert_eq!(file("apiserver.key"), fs::read_to_string(dir.path().join("pki/apiserver.key")).unwrap());
    let before = fs::metadata(shown.path().join("apiserver.crt")).unwrap().modified().unwrap();
    sources.ensure(SystemTime::now()).unwrap();
    assert_eq!(fs::metadata(shown.path().join("apiserver.crt")).unwrap().modified().unwrap(), before);
}
