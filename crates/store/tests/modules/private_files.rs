//! Tests of `private_files`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use rowplane_store::private_files::narrow;

#[test]
fn others_lose_what_they_had_and_the_owner_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    for (before, after) in [(0o644, 0o600), (0o666, 0o600), (0o440, 0o400), (0o600, 0o600)] {
        std::fs::write(&path, "k").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
        narrow(&path);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, after, "{before:o}");
        std::fs::remove_file(&path).unwrap();
    }
    narrow(&path);
    assert!(!path.exists());
}
