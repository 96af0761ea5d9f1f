//! A directory of certificates and keys, by kubeadm's names.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

/// A CA, whose certificate is in a file `NAME.crt` of a directory.
pub struct Authority<'a> {
    dir: &'a Path,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl<'a> Authority<'a> {
    pub fn write(dir: &'a Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(dir.join(format!("{name}.crt")), issuer.pem()).unwrap();
        Self { dir, issuer }
    }

    /// Writes the certificate and the key of a server at 127.0.0.1.
    pub fn server(&self, name: &str) {
        self.issue(name, ExtendedKeyUsagePurpose::ServerAuth);
    }

    pub fn client(&self, name: &str) {
        self.issue(name, ExtendedKeyUsagePurpose::ClientAuth);
    }

    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.dir.join(format!("{name}.crt")), certificate.pem()).unwrap();
        write_key(self.dir, name, &key);
    }
}

fn write_key(dir: &Path, name: &str, key: &KeyPair) {
    std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// Writes all files that kubeadm passes to kube-apiserver.
pub fn write_all(dir: &Path) {
    let authority = Authority::write(dir, "ca");
    authority.server("apiserver");
    authority.server("admin");
    authority.client("apiserver-kubelet-client");
    Authority::write(dir, "front-proxy-ca").client("front-proxy-client");
    let accounts = KeyPair::generate().unwrap();
    write_key(dir, "sa", &accounts);
    std::fs::write(dir.join("sa.pub"), accounts.public_key_pem()).unwrap();
    let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&accounts).unwrap();
    std::fs::write(dir.join("sa.crt"), certificate.pem()).unwrap();
}
