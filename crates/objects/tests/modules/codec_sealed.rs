//! Tests of `sealed`.

use rowplane_objects::codec::sealed::{refused, why_refused};

#[test]
fn the_reason_is_kept() {
    assert_eq!(why_refused(&refused("no key")), Some("no key"));
    assert_eq!(why_refused(b"k8s\0"), None);
    assert_eq!(why_refused(b"{}"), None);
    let unknown = Some("identity transformer tried to read encrypted data");
    for stored in [
        &b"k8s:enc:"[..],
        b"k8s:enc:aescbc:v1:a:",
        b"k8s:enc::",
        b"k8s:enc::\0\0\0\x09a",
        b"k8s:enc::\0\0\0\x01\xff",
    ] {
        assert_eq!(why_refused(stored), unknown);
    }
}
