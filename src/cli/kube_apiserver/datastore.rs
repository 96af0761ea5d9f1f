//! The datastore of a server in kube-apiserver's place (`docs/spec/cluster.md`, 3.3).

use std::path::PathBuf;

use super::Translation;
use super::etcd_servers::EtcdServers;
use crate::cli::error::Error;
use crate::cli::etcd::datastore::Place;

const SERVERS: &str = "etcd-servers";
/// The flags about TLS to etcd.
const FILES: [&str; 3] = ["etcd-cafile", "etcd-certfile", "etcd-keyfile"];
/// The schemes of datastores, which `--etcd-servers` may name as well.
const DATASTORES: [&str; 4] = ["sqlite:", "postgres:", "postgresql:", "memory:"];

impl Translation<'_> {
    /// Sets `--datastore` by the flags, or by the answer of what `--etcd-servers` names. Returns why the state is in
    /// memory if nobody asked for that.
    pub(super) fn choose_datastore(
        &mut self,
        ask: impl FnOnce(&EtcdServers) -> Result<Place, Error>,
    ) -> Result<Option<String>, Error> {
        if self.is_set("datastore") {
            self.ignore(&[SERVERS], "--datastore says where state is kept");
            self.ignore(&FILES, "--datastore says where state is kept");
            return Ok(None);
        }
        // The hosts of a URL of PostgreSQL are separated by commas, too.
        let all = self.values.get(SERVERS).map(|given| given.join(",")).unwrap_or_default();
        if DATASTORES.iter().any(|scheme| all.starts_with(scheme)) {
            self.ignore(&FILES, "there is no etcd here");
            self.serve.push(format!("--datastore={all}"));
            return Ok(None);
        }
        let servers = self.etcd_servers();
        if !servers.urls.iter().any(|url| url.starts_with("https:")) {
            self.ignore(&FILES, "no URL of --etcd-servers has https");
        }
        let why = match servers.urls.is_empty() {
            true => "no flag names another place".to_owned(),
            false => {
                let place = ask(&servers)?;
                match place.file() {
                    Some(file) if !place.is_seen(&file) => {
                        format!("{} of {all} is not mounted here", file.with_file_name("").display())
                    }
                    file => {
                        if file.is_none() {
                            self.ignore(&[SERVERS], "etcd's --unsafe-no-fsync leaves state in memory");
                        }
                        self.serve.push(format!("--datastore={}", place.datastore));
                        return Ok(None);
                    }
                }
            }
        };
        // The default datastore is SQLite there. The variable does not count: images set it, to directories that are
        // lost with their containers.
        if self.last("data-dir").is_some_and(|path| !path.is_empty()) {
            return Ok(None);
        }
        self.serve.push("--datastore=memory:".to_owned());
        Ok(Some(why))
    }

    fn etcd_servers(&self) -> EtcdServers {
        let path = |name: &str| self.last(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let [authorities, certificate, key] = FILES.map(path);
        let urls = self.list(SERVERS).into_iter().map(str::to_owned).collect();
        EtcdServers { urls, authorities, identity: certificate.zip(key) }
    }

    /// Notes the flags among these that are set.
    fn ignore(&mut self, names: &[&str], reason: &str) {
        let given = names.iter().filter(|name| self.values.contains_key(**name));
        self.notes.extend(given.map(|name| format!("--{name} ({reason})")));
    }
}
