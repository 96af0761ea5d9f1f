//! Tests of `identity`.

use rowplane_store::identity::ServerIdentity;

#[test]
fn storage_version_17_check_values() {
    for (hostname, id) in [
        ("localhost", "apiserver-l2yubf4cvcl5c7a3wrubrwqdve"),
        ("rowplane-0", "apiserver-gotpdk75sum55hzo2xkplynseu"),
        ("rowplane-1", "apiserver-zzebgu36tsk47tngoiorm4tiha"),
    ] {
        assert_eq!(ServerIdentity::of_host(hostname).id(), id);
    }
}

#[test]
fn a_suffix_always_fits_a_label() {
    let named = |hostname: &str| ServerIdentity::of_host(hostname).with_suffix("6444").hostname().to_owned();
    assert_eq!(named("laptop"), "laptop-6444");
    assert_eq!(named(&"x".repeat(63)), format!("{}-6444", "x".repeat(58)));
    assert_eq!(named(&format!("{}.-{}", "x".repeat(56), "y".repeat(5))), format!("{}-6444", "x".repeat(56)));
    let laptop = ServerIdentity::of_host("laptop");
    assert_eq!(laptop.with_suffix("6444"), ServerIdentity::of_host("laptop-6444"));
}
