//! What is in the directory after which start.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::auth::authn::user_of_certificate;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn names(bind: &str) -> ServingNames {
    ServingNames { bind_address: bind.parse().unwrap(), hostname: Some("host-1".into()), extra: Vec::new() }
}

fn ensure_at(dir: &TempDir, bind: &str, now: SystemTime) -> Result<Pki, Error> {
    Pki::ensure(&dir.path().join("pki"), &names(bind), &Overrides::default(), now)
}

fn ensure(dir: &TempDir, bind: &str) -> Result<Pki, Error> {
    ensure_at(dir, bind, SystemTime::now())
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
    assert_eq!(first.serving_chain, second.serving_chain);
    assert_eq!(first.admin_certificate, second.admin_certificate);
    assert_eq!(first.server_authority, second.server_authority);
}

#[test]
fn the_admin_is_a_master() {
    let dir = TempDir::new().unwrap();
    let pki = ensure(&dir, "127.0.0.1").unwrap();
    let chain = certificates(Path::new("admin"), pki.admin_certificate.as_bytes()).unwrap();
    let user = user_of_certificate(&chain[0]).unwrap();
    assert_eq!(user.name, "kubernetes-admin");
    assert!(user.is_in("system:masters"));
}

#[test]
fn a_new_bind_address_renews_only_the_serving_certificate() {
    let dir = TempDir::new().unwrap();
    let before = ensure(&dir, "127.0.0.1").unwrap();
    let (key, ca) = (read(&dir, "apiserver.key"), read(&dir, "ca.crt"));
    let after = ensure(&dir, "192.0.2.7").unwrap();
    assert_ne!(before.serving_chain, after.serving_chain);
    assert_eq!(before.admin_certificate, after.admin_certificate);
    assert_eq!((key, ca), (read(&dir, "apiserver.key"), read(&dir, "ca.crt")));
    assert_eq!(ensure(&dir, "192.0.2.7").unwrap().serving_chain, after.serving_chain);
}

#[test]
fn certificates_near_their_end_are_renewed_under_the_same_ca() {
    let dir = TempDir::new().unwrap();
    let before = ensure(&dir, "127.0.0.1").unwrap();
    let early = ensure_at(&dir, "127.0.0.1", SystemTime::now() + 200 * DAY).unwrap();
    assert_eq!(before.serving_chain, early.serving_chain);
    let late = ensure_at(&dir, "127.0.0.1", SystemTime::now() + 300 * DAY).unwrap();
    assert_ne!(before.serving_chain, late.serving_chain);
    assert_ne!(before.admin_certificate, late.admin_certificate);
    assert_eq!(before.server_authority, late.server_authority);
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
    assert_ne!(before.admin_certificate, after.admin_certificate);
    assert_eq!(
        after.server_authority.trim_end(),
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
fn flags_replace_the_serving_certificate_and_add_client_authorities() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let foreign = ensure(&other, "127.0.0.1").unwrap();
    let file = |name: &str| other.path().join("pki").join(name);
    let overrides = Overrides {
        client_ca_file: Some(file("ca.crt")),
        serving: Some((file("apiserver.crt"), file("apiserver.key"))),
    };
    let pki_dir = dir.path().join("pki");
    let pki = Pki::ensure(&pki_dir, &names("127.0.0.1"), &overrides, SystemTime::now()).unwrap();
    assert_eq!(pki.serving_chain, foreign.serving_chain);
    assert_eq!(pki.client_roots.len(), 2);
    assert!(!pki_dir.join("apiserver.key").exists());
}

#[test]
fn the_kubeconfig_names_an_address_that_can_be_dialled() {
    let dir = TempDir::new().unwrap();
    let pki = ensure(&dir, "0.0.0.0").unwrap();
    let server = |bound: &str| {
        let bound: SocketAddr = bound.parse().unwrap();
        Kubeconfig::admin(&pki, bound).server().to_owned()
    };
    assert_eq!(server("0.0.0.0:6443"), "https://127.0.0.1:6443");
    assert_eq!(server("[::]:1"), "https://[::1]:1");
    assert_eq!(server("192.0.2.7:6443"), "https://192.0.2.7:6443");
}

#[test]
fn the_kubeconfig_is_private_and_goes_only_when_outdated() {
    let dir = TempDir::new().unwrap();
    let pki = ensure(&dir, "127.0.0.1").unwrap();
    let path = dir.path().join("admin.kubeconfig");
    let old = Kubeconfig::admin(&pki, "127.0.0.1:1".parse().unwrap());
    let new = Kubeconfig::admin(&pki, "127.0.0.1:2".parse().unwrap());
    old.write(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    old.remove_outdated(&path).unwrap();
    assert!(path.exists());
    new.remove_outdated(&path).unwrap();
    assert!(!path.exists());
    new.remove_outdated(&path).unwrap();
}
