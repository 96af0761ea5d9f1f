//! Certificates of a cluster's programs and users, with the names of files and the subjects of kubeadm v1.37
//! (`cmd/kubeadm/app/phases/{certs,kubeconfig}`).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowplane_objects::codec::yaml;
use rowplane_values::tree::{Value, json};

use super::files::{self, Access};
use super::inspect::{self, Described};
use super::issue::{self, Ca, CaFiles, ClientSubject, Profile};
use super::{Admin, CA_NAME, Error, Kubeconfig, ServingNames, TokenKeys, front_proxy};

const SERVER: &str = "/clusters/0/cluster/server";
const CERTIFICATE: &str = "/users/0/user/client-certificate-data";
const KEY: &str = "/users/0/user/client-key-data";

/// A certificate of the cluster, or a CA, or the keys of tokens.
#[derive(Debug)]
pub struct ClusterCertificate {
    /// The name on the command line, and that of the files.
    pub name: &'static str,
    pub form: Form,
}

/// The files of a [`ClusterCertificate`].
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// `NAME.crt` and `NAME.key` of the cluster's CA.
    ClusterCa,
    /// The same of the CA of front proxies, which signs nothing but their certificates.
    FrontProxyCa,
    /// `NAME.crt` and `NAME.key`, a server's.
    Serving,
    /// `NAME.crt` and `NAME.key`, a client's.
    Client(ClientSubject),
    /// The same, by the CA of front proxies.
    FrontProxyClient,
    /// `NAME.conf`, a kubeconfig with a client's certificate and key.
    Kubeconfig(ClientSubject),
    /// `NAME.key` and `NAME.pub`, for tokens of service accounts.
    TokenKeys,
}

impl Form {
    /// Whether it can be issued again by the CA.
    pub fn is_renewable(self) -> bool {
        !matches!(self, Self::ClusterCa | Self::FrontProxyCa | Self::TokenKeys)
    }
}

const fn certificate(name: &'static str, form: Form) -> ClusterCertificate {
    ClusterCertificate { name, form }
}

const fn user(common_name: &'static str, organization: Option<&'static str>) -> ClientSubject {
    ClientSubject { common_name, organization }
}

/// The certificates that can be issued, in the order in which they are listed.
pub const CLUSTER_CERTIFICATES: [ClusterCertificate; 11] = [
    certificate("ca", Form::ClusterCa),
    certificate("apiserver", Form::Serving),
    certificate("apiserver-kubelet-client", Form::Client(user("kube-apiserver-kubelet-client", None))),
    certificate("front-proxy-ca", Form::FrontProxyCa),
    certificate("front-proxy-client", Form::FrontProxyClient),
    certificate("sa", Form::TokenKeys),
    certificate("admin", Form::Kubeconfig(user("kubernetes-admin", Some("kubeadm:cluster-admins")))),
    certificate("super-admin", Form::Kubeconfig(user("kubernetes-super-admin", Some(crate::user::MASTERS)))),
    certificate("controller-manager", Form::Kubeconfig(user("system:kube-controller-manager", None))),
    certificate("scheduler", Form::Kubeconfig(user("system:kube-scheduler", None))),
    certificate("kube-proxy", Form::Kubeconfig(user("system:kube-proxy", None))),
];

/// The certificate of this name.
pub fn cluster_certificate(name: &str) -> Option<&'static ClusterCertificate> {
    CLUSTER_CERTIFICATES.iter().find(|one| one.name == name)
}

/// The key of a renewed certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    SameKey,
    NewKey,
}

/// A certificate that is there, or the keys of tokens.
#[derive(Debug)]
pub struct Issued {
    pub name: &'static str,
    /// The file with the certificate, or with the private key of tokens.
    pub path: PathBuf,
    /// `None` for keys.
    pub certificate: Option<Described>,
    /// Whether this call has written the file.
    pub is_new: bool,
}

/// The files of a cluster's certificates.
#[derive(Clone, Debug)]
pub struct ClusterFiles {
    /// The certificate and the key of a CA that has to exist; `None` for that of `own_ca_dir`.
    pub ca: Option<(PathBuf, PathBuf)>,
    /// The directory of the servers' own CA, which is made when it is missing.
    pub own_ca_dir: PathBuf,
    /// The directory of certificates and keys.
    pub dir: PathBuf,
    /// The directory of kubeconfigs.
    pub kubeconfig_dir: PathBuf,
    /// The names of a server in a new certificate.
    pub names: ServingNames,
}

impl ClusterFiles {
    /// Issues a certificate for a new key, or for the key that is there alone. A certificate that is there stays, if it
    /// belongs to its key and its CA. `server` is the URL in kubeconfigs.
    pub fn issue(&self, one: &ClusterCertificate, server: &str, now: SystemTime) -> Result<Issued, Error> {
        if let Some(issued) = self.find(one)? {
            self.check(one)?;
            return Ok(issued);
        }
        let path = self.path(one);
        files::create_dir(path.parent().unwrap_or(Path::new(".")))?;
        match one.form {
            Form::ClusterCa | Form::FrontProxyCa => drop(self.authority(one, now)?),
            Form::TokenKeys => {
                let keys = TokenKeys::load(&self.dir)?;
                let public = path.with_extension("pub");
                files::replace(&public, keys.signing.public.to_pem().as_bytes(), Access::Everybody)?;
            }
            Form::Kubeconfig(user) => {
                let (ca, key) = (self.authority(one, now)?, issue::new_key(&path)?);
                let certificate = ca.issue(&key, &Profile::Client(user), &path, now)?;
                let user_of_file = Admin { certificate, key: issue::sec1(&key), server_authority: ca.pem };
                let kubeconfig = Kubeconfig::of_user(user.common_name, &user_of_file, server);
                files::create(&path, kubeconfig.text().as_bytes(), Access::Owner)?;
            }
            Form::Serving => self.issue_pair(one, &Profile::Serving(&self.names), now)?,
            Form::Client(user) => self.issue_pair(one, &Profile::Client(user), now)?,
            Form::FrontProxyClient => self.issue_pair(one, &Profile::Client(issue::FRONT_PROXY), now)?,
        }
        Ok(Issued { is_new: true, ..self.present(one)? })
    }

    /// Issues a certificate for the key that is there, or else for a new one.
    fn issue_pair(
        &self,
        one: &ClusterCertificate,
        profile: &Profile<'_>,
        now: SystemTime,
    ) -> Result<(), Error> {
        let (ca, path) = (self.authority(one, now)?, self.path(one));
        let key = issue::ensure_key_as(&path.with_extension("key"), issue::sec1)?;
        files::create(&path, ca.issue(&key, profile, &path, now)?.as_bytes(), Access::Everybody)
    }

    /// Issues a certificate of the same subject and names again. A kubeconfig keeps everything else.
    pub fn renew(&self, one: &ClusterCertificate, with: Renewal, now: SystemTime) -> Result<Issued, Error> {
        let path = self.path(one);
        let present = self.present(one)?;
        match one.form {
            Form::Kubeconfig(user) => self.renew_kubeconfig(one, user, with, now)?,
            Form::Client(user) => self.renew_pair(one, &Profile::Client(user), with, now)?,
            Form::FrontProxyClient => {
                self.renew_pair(one, &Profile::Client(issue::FRONT_PROXY), with, now)?;
            }
            Form::Serving => {
                let names = inspect::serving_names(&path, &files::read(&path)?)?;
                self.renew_pair(one, &Profile::Serving(&names), with, now)?;
            }
            Form::ClusterCa | Form::FrontProxyCa | Form::TokenKeys => return Ok(present),
        }
        Ok(Issued { is_new: true, ..self.present(one)? })
    }

    fn renew_kubeconfig(
        &self,
        one: &ClusterCertificate,
        user: ClientSubject,
        with: Renewal,
        now: SystemTime,
    ) -> Result<(), Error> {
        let (ca, path) = (self.authority(one, now)?, self.path(one));
        let mut kubeconfig = parse(&path)?;
        // A kubeconfig that names a file instead of the key cannot be renewed in either way.
        let old = embedded(&kubeconfig, KEY, &path)?;
        let key = match with {
            Renewal::NewKey => issue::new_key(&path)?,
            Renewal::SameKey => issue::key_of_pem(old, &path)?,
        };
        let certificate = ca.issue(&key, &Profile::Client(user), &path, now)?;
        for (place, pem) in [(CERTIFICATE, certificate), (KEY, issue::sec1(&key))] {
            if let Some(value) = kubeconfig.pointer_mut(place) {
                *value = json!(STANDARD.encode(pem));
            }
        }
        files::replace(&path, yaml::write(&kubeconfig).as_bytes(), Access::Owner)
    }

    fn renew_pair(
        &self,
        one: &ClusterCertificate,
        profile: &Profile<'_>,
        with: Renewal,
        now: SystemTime,
    ) -> Result<(), Error> {
        let (ca, path) = (self.authority(one, now)?, self.path(one));
        let key_path = path.with_extension("key");
        let key = match with {
            Renewal::NewKey => issue::new_key(&key_path)?,
            Renewal::SameKey => issue::read_key(&key_path)?,
        };
        let certificate = ca.issue(&key, profile, &path, now)?;
        if with == Renewal::NewKey {
            files::replace(&key_path, issue::sec1(&key).as_bytes(), Access::Owner)?;
        }
        files::replace(&path, certificate.as_bytes(), Access::Everybody)
    }

    /// Issues a certificate that is missing, and again one that ends soon; a kubeconfig is given the URL of the server.
    pub fn ensure(&self, one: &ClusterCertificate, server: &str, now: SystemTime) -> Result<Issued, Error> {
        let mut issued = self.issue(one, server, now)?;
        if let Some(certificate) = &issued.certificate
            && one.form.is_renewable()
            && self.authority(one, now)?.should_renew(certificate.until, now)
        {
            issued = self.renew(one, Renewal::SameKey, now)?;
        }
        let Form::Kubeconfig(_) = one.form else { return Ok(issued) };
        let mut kubeconfig = parse(&issued.path)?;
        match kubeconfig.pointer_mut(SERVER) {
            Some(present) if present.as_str() != Some(server) => *present = json!(server),
            _ => return Ok(issued),
        }
        files::replace(&issued.path, yaml::write(&kubeconfig).as_bytes(), Access::Owner)?;
        Ok(Issued { is_new: true, ..issued })
    }

    /// The certificate, if its file exists.
    pub fn find(&self, one: &ClusterCertificate) -> Result<Option<Issued>, Error> {
        match files::try_read(&self.path(one))? {
            Some(_) => self.present(one).map(Some),
            None => Ok(None),
        }
    }

    fn present(&self, one: &ClusterCertificate) -> Result<Issued, Error> {
        let path = self.path(one);
        let pem = match one.form {
            Form::TokenKeys => {
                issue::read_key(&path)?;
                return Ok(Issued { name: one.name, path, certificate: None, is_new: false });
            }
            Form::Kubeconfig(_) => embedded(&parse(&path)?, CERTIFICATE, &path)?,
            _ => files::read(&path)?,
        };
        let certificate = Some(inspect::describe(&path, &pem)?);
        Ok(Issued { name: one.name, path, certificate, is_new: false })
    }

    /// Refuses a certificate of another key or another CA.
    fn check(&self, one: &ClusterCertificate) -> Result<(), Error> {
        let path = self.path(one);
        let key_path = path.with_extension("key");
        let (pem, key, key_path) = match one.form {
            // Read as it is used.
            Form::ClusterCa | Form::FrontProxyCa | Form::TokenKeys => return Ok(()),
            Form::Kubeconfig(_) => {
                let kubeconfig = parse(&path)?;
                let [pem, key] = [CERTIFICATE, KEY].map(|place| embedded(&kubeconfig, place, &path));
                (pem?, key?, path.clone())
            }
            _ => (files::read(&path)?, files::read(&key_path)?, key_path),
        };
        let key = issue::key_of_pem(key, &key_path)?;
        inspect::check_leaf((&path, &pem), (&key_path, &key), &self.ca_files(one).certificate)
    }

    fn path(&self, one: &ClusterCertificate) -> PathBuf {
        match one.form {
            Form::ClusterCa | Form::FrontProxyCa => self.ca_files(one).certificate,
            Form::Kubeconfig(_) => self.kubeconfig_dir.join(format!("{}.conf", one.name)),
            Form::TokenKeys => self.dir.join(format!("{}.key", one.name)),
            _ => self.dir.join(format!("{}.crt", one.name)),
        }
    }

    /// The CA that signs the certificate, or that is it.
    fn authority(&self, one: &ClusterCertificate, now: SystemTime) -> Result<Ca, Error> {
        let files = self.ca_files(one);
        let name = match one.form {
            Form::FrontProxyCa | Form::FrontProxyClient => front_proxy::CA_NAME,
            _ if self.ca.is_some() => return Ca::load(&files, now),
            _ => CA_NAME,
        };
        files::create_dir(files.certificate.parent().unwrap_or(Path::new(".")))?;
        Ca::ensure(&files, name, now)
    }

    fn ca_files(&self, one: &ClusterCertificate) -> CaFiles {
        match (one.form, &self.ca) {
            (Form::FrontProxyCa | Form::FrontProxyClient, _) => CaFiles::named(&self.dir, "front-proxy-ca"),
            (_, Some((certificate, key))) => CaFiles { certificate: certificate.clone(), key: key.clone() },
            (_, None) => CaFiles::named(&self.own_ca_dir, "ca"),
        }
    }
}

fn parse(path: &Path) -> Result<Value, Error> {
    yaml::parse(&files::read(path)?).map_err(|reason| Error::BadCertificate { path: path.to_owned(), reason })
}

fn embedded(kubeconfig: &Value, place: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let bad = |reason: String| Error::BadCertificate { path: path.to_owned(), reason };
    let text = kubeconfig.pointer(place).and_then(Value::as_str);
    let text =
        text.ok_or_else(|| bad(format!("it has no {}", place.trim_start_matches("/users/0/user/"))))?;
    STANDARD.decode(text).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A certificate that would outlive its CA ends with it, and is not issued again and again for that.
    #[test]
    fn no_certificate_outlives_its_ca() {
        let dir = tempfile::tempdir().expect("a directory");
        let pki = dir.path().to_owned();
        let files = ClusterFiles {
            ca: None,
            own_ca_dir: pki.clone(),
            dir: pki.clone(),
            kubeconfig_dir: pki,
            names: ServingNames::local(),
        };
        let (now, day) = (SystemTime::now(), Duration::from_secs(24 * 60 * 60));
        let named = |name| cluster_certificate(name).expect("a certificate");
        let until = |issued: &Issued| issued.certificate.as_ref().expect("a certificate").until;
        let ca = files.issue(named("ca"), "", now - 3620 * day).expect("a CA");
        let serving = files.ensure(named("apiserver"), "", now).expect("a certificate");
        assert_eq!(until(&serving), until(&ca));
        assert!(!files.ensure(named("apiserver"), "", now).expect("a certificate").is_new);

        let scheduler = files.ensure(named("scheduler"), "https://h:1", now).expect("a certificate");
        let again = files.ensure(named("scheduler"), "https://h:2", now).expect("a certificate");
        assert!(again.is_new && until(&again) == until(&scheduler));
        let text = std::fs::read_to_string(&again.path).expect("a kubeconfig");
        assert!(text.contains("https://h:2") && !text.contains("https://h:1"), "{text}");
    }

    /// Certificates are renewed some time before they end, with their names and their keys.
    #[test]
    fn certificates_are_renewed_in_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let pki = dir.path().to_owned();
        let names = ServingNames { extra: vec!["api.example.org".to_owned()], ..ServingNames::local() };
        let files =
            ClusterFiles { ca: None, own_ca_dir: pki.clone(), dir: pki.clone(), kubeconfig_dir: pki, names };
        let (now, day) = (SystemTime::now(), Duration::from_secs(24 * 60 * 60));
        let named = |name| cluster_certificate(name).expect("a certificate");
        files.issue(named("ca"), "", now - 400 * day).expect("a CA");
        for name in ["apiserver", "front-proxy-client", "kube-proxy"] {
            let old = files.issue(named(name), "", now - 300 * day).expect("a certificate");
            let names = |path: &Path| {
                let names = inspect::serving_names(path, &files::read(path).expect("a file"));
                names.map(|names| names.extra).unwrap_or_default()
            };
            let before = names(&old.path);
            let renewed = files.ensure(named(name), "", now).expect("a certificate");
            assert!(renewed.is_new, "{name}");
            assert_eq!(names(&renewed.path), before);
            assert_eq!(before.contains(&"api.example.org".to_owned()), name == "apiserver");
            assert!(!files.ensure(named(name), "", now).expect("a certificate").is_new, "{name}");
        }
    }
}
