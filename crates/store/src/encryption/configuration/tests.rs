use super::*;

#[test]
fn keys_are_not_printed() {
    let text = "{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{resources: \
        [secrets, '*.apps'], providers: [{aescbc: {keys: [{name: k1, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}}]}]}";
    let read = Configuration::parse(text.as_bytes(), Path::new("FILE"), Reload::No).expect("good");
    let printed = format!("{read:?}");
    assert!(printed.contains("Name: k1, Secret: [REDACTED]") && !printed.contains("115, 101"), "{printed}");
    assert_eq!(
        read.entries[0].resources,
        [GroupResource::new("", "secrets"), GroupResource::new("apps", "*")]
    );
}
