//! Certificates of a cluster's other programs and users, with the names of files and the subjects of kubeadm v1.37
//! (`cmd/kubeadm/app/phases/{certs,kubeconfig}`).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowplane_objects::codec::yaml;
use rowplane_values::tree::{Value, json};

use super::files::{self, Access};
use super::issue::{self, Ca, ClientSubject, Profile};
use super::{Admin, CA_NAME, Error, Kubeconfig, certificates};

const CERTIFICATE: &str = "/users/0/user/client-certificate-data";
const KEY: &str = "/users/0/user/client-key-data";

/// A client certificate of the cluster.
#[derive(Debug)]
pub struct ClusterCertificate {
    /// The name on the command line, and that of the file: `NAME.crt` with `NAME.key`, or `NAME.conf`.
    pub name: &'static str,
    pub subject: ClientSubject,
    is_kubeconfig: bool,
}

const fn certificate(
    name: &'static str,
    is_kubeconfig: bool,
    common_name: &'static str,
    organization: Option<&'static str>,
) -> ClusterCertificate {
    ClusterCertificate { name, subject: ClientSubject { common_name, organization }, is_kubeconfig }
}

/// The certificates that can be issued, in the order in which they are listed.
pub const CLUSTER_CERTIFICATES: [ClusterCertificate; 6] = [
    certificate("apiserver-kubelet-client", false, "kube-apiserver-kubelet-client", None),
    certificate("admin", true, "kubernetes-admin", Some("kubeadm:cluster-admins")),
    certificate("super-admin", true, "kubernetes-super-admin", Some(crate::user::MASTERS)),
    certificate("controller-manager", true, "system:kube-controller-manager", None),
    certificate("scheduler", true, "system:kube-scheduler", None),
    certificate("kube-proxy", true, "system:kube-proxy", None),
];

/// The key of a renewed certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    SameKey,
    NewKey,
}

/// A certificate that is there.
#[derive(Debug)]
pub struct Issued {
    pub name: &'static str,
    /// The file with the certificate.
    pub path: PathBuf,
    /// The end of its validity.
    pub until: SystemTime,
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
}

impl ClusterFiles {
    /// Issues a certificate for a new key, or for the key that is there alone. A certificate that is there stays.
    /// `server` is the URL in kubeconfigs.
    pub fn issue(&self, one: &ClusterCertificate, server: &str, now: SystemTime) -> Result<Issued, Error> {
        if let Some(issued) = self.find(one)? {
            return Ok(issued);
        }
        let (ca, path) = (self.ca(now)?, self.path(one));
        let profile = Profile::Client(one.subject);
        files::create_dir(path.parent().unwrap_or(Path::new(".")))?;
        if one.is_kubeconfig {
            let key = issue::new_key(&path)?;
            let certificate = ca.issue(&key, &profile, &path, now)?;
            let user = Admin { certificate, key: issue::sec1(&key), server_authority: ca.pem };
            let kubeconfig = Kubeconfig::of_user(one.subject.common_name, &user, server);
            files::create(&path, kubeconfig.text().as_bytes(), Access::Owner)?;
        } else {
            let key = issue::ensure_key_as(&path.with_extension("key"), issue::sec1)?;
            files::create(&path, ca.issue(&key, &profile, &path, now)?.as_bytes(), Access::Everybody)?;
        }
        Ok(Issued { is_new: true, ..self.present(one)? })
    }

    /// Issues a certificate of the same subject again. A kubeconfig keeps everything else.
    pub fn renew(&self, one: &ClusterCertificate, with: Renewal, now: SystemTime) -> Result<Issued, Error> {
        self.present(one)?;
        let (ca, path) = (self.ca(now)?, self.path(one));
        let profile = Profile::Client(one.subject);
        if one.is_kubeconfig {
            let mut kubeconfig = parse(&path)?;
            // A kubeconfig that names a file instead of the key cannot be renewed in either way.
            let old = embedded(&kubeconfig, KEY, &path)?;
            let key = match with {
                Renewal::NewKey => issue::new_key(&path)?,
                Renewal::SameKey => issue::key_of_pem(old, &path)?,
            };
            let certificate = ca.issue(&key, &profile, &path, now)?;
            for (place, pem) in [(CERTIFICATE, certificate), (KEY, issue::sec1(&key))] {
                if let Some(value) = kubeconfig.pointer_mut(place) {
                    *value = json!(STANDARD.encode(pem));
                }
            }
            files::replace(&path, yaml::write(&kubeconfig).as_bytes(), Access::Owner)?;
        } else {
            let key_path = path.with_extension("key");
            let key = match with {
                Renewal::NewKey => issue::new_key(&key_path)?,
                Renewal::SameKey => issue::read_key(&key_path)?,
            };
            let certificate = ca.issue(&key, &profile, &path, now)?;
            if with == Renewal::NewKey {
                files::replace(&key_path, issue::sec1(&key).as_bytes(), Access::Owner)?;
            }
            files::replace(&path, certificate.as_bytes(), Access::Everybody)?;
        }
        Ok(Issued { is_new: true, ..self.present(one)? })
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
        let pem = if one.is_kubeconfig {
            embedded(&parse(&path)?, CERTIFICATE, &path)?
        } else {
            files::read(&path)?
        };
        let until = certificates(&path, &pem)?.first().and_then(issue::until);
        let bad =
            || Error::BadCertificate { path: path.clone(), reason: "its end cannot be read".to_owned() };
        Ok(Issued { name: one.name, until: until.ok_or_else(bad)?, is_new: false, path })
    }

    fn path(&self, one: &ClusterCertificate) -> PathBuf {
        let (dir, suffix) =
            if one.is_kubeconfig { (&self.kubeconfig_dir, "conf") } else { (&self.dir, "crt") };
        dir.join(format!("{}.{suffix}", one.name))
    }

    fn ca(&self, now: SystemTime) -> Result<Ca, Error> {
        match &self.ca {
            Some((certificate, key)) => Ca::load_files(certificate, key, now),
            None => {
                files::create_dir(&self.own_ca_dir)?;
                Ca::ensure(&self.own_ca_dir, CA_NAME, now)
            }
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
