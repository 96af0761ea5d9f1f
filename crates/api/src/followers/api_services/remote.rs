//! The way to an extension server: its Service, the authorities of its certificate, and the connections that are kept.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::ProxyIdentity;
use crate::relay::pool::Pool;
use crate::server_trust::{Identity, Trusted, client_config};
use crate::service_routes::ServicePort;
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// The extension server of an APIService.
#[derive(Debug)]
pub struct Remote {
    way: Way,
    /// The connections, with the certificate of this server that they show. Made when somebody needs them.
    pool: Mutex<Option<Kept>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Way {
    namespace: String,
    name: String,
    port: u16,
    /// PEM; empty for the authorities of the system.
    ca_bundle: Vec<u8>,
    skips_verification: bool,
}

#[derive(Debug)]
struct Kept {
    identity: Option<Arc<Identity>>,
    pool: Result<Arc<Pool>, String>,
}

impl Remote {
    /// The extension server that an APIService names; `None` if it is a local one. Connections of the same way are kept.
    pub(super) fn of(object: &ObjectMap, before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let service = fields::at(object, &["spec", "service"]).and_then(Value::as_object)?;
        let port = fields::at(service, &["port"]).and_then(Value::as_u64).unwrap_or(443);
        let bundle = fields::text(object, &["spec", "caBundle"]);
        let skips = fields::at(object, &["spec", "insecureSkipTLSVerify"]).and_then(Value::as_bool);
        let way = Way {
            namespace: fields::text(service, &["namespace"]).to_owned(),
            name: fields::text(service, &["name"]).to_owned(),
            port: u16::try_from(port).unwrap_or_default(),
            ca_bundle: STANDARD.decode(bundle).unwrap_or_default(),
            skips_verification: skips.unwrap_or_default(),
        };
        match before.filter(|before| before.way == way) {
            Some(before) => Some(before.clone()),
            None => Some(Arc::new(Self { way, pool: Mutex::default() })),
        }
    }

    /// The port of the Service.
    pub fn service(&self) -> ServicePort<'_> {
        ServicePort { namespace: &self.way.namespace, name: &self.way.name, port: self.way.port }
    }

    /// The connections. Fails if the bundle of authorities or the certificate of this server cannot be used. Blocks the
    /// first time where the authorities of the system are read.
    pub fn pool(&self, identity: &ProxyIdentity) -> Result<Arc<Pool>, String> {
        let identity = identity.load_full();
        let mut kept = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kept: &&Kept| match (&kept.identity, &identity) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if let Some(found) = kept.as_ref().filter(is_same) {
            return found.pool.clone();
        }
        let pool = self.open(identity.as_deref()).map(Arc::new);
        *kept = Some(Kept { identity, pool: pool.clone() });
        pool
    }

    /// Closes connections that nobody uses: a check has failed on them.
    pub fn close_idle(&self) {
        let kept = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Kept { pool: Ok(pool), .. }) = &*kept {
            pool.close_idle();
        }
    }

    fn open(&self, identity: Option<&Identity>) -> Result<Pool, String> {
        let Way { namespace, name, ca_bundle, skips_verification, .. } = &self.way;
        let trusted = match (skips_verification, &ca_bundle[..]) {
            (true, _) => None,
            (false, []) => Some(Trusted::system()),
            (false, bundle) => Some(Trusted::of_bundle(bundle)?),
        };
        let identity = identity.map(|(chain, key)| (chain.clone(), key.clone_key()));
        Ok(Pool::new(client_config(trusted, identity)?, format!("{name}.{namespace}.svc")))
    }
}
