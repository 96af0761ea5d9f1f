//! What tells people that a server is ready, and where.

use std::io::Write as _;

use crate::http::discovery::version;
use crate::server::Server;
use crate::server::datastore::Datastore;

/// Prints where the server is and how kubectl finds it.
pub fn print(server: &Server, store: &Datastore) {
    // Whoever started the server may have closed its standard output; that is no reason to end.
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{}", banner(server, store)).and_then(|()| out.flush());
}

fn banner(server: &Server, store: &Datastore) -> String {
    let clients = match server.kubeconfig_path() {
        Some(path) => {
            let path = std::path::absolute(&path).unwrap_or(path);
            format!("export KUBECONFIG={}", for_shell(&path.to_string_lossy()))
        }
        None => "  users  of --client-ca-file and --token-auth-file".to_owned(),
    };
    format!(
        "rowplane {} (Kubernetes {})\n  store  {store}\n  url    {}\n{clients}\n",
        env!("CARGO_PKG_VERSION"),
        version::release(),
        server.url().unwrap_or_default(),
    )
}

/// Quoted where a shell would otherwise take it apart.
fn for_shell(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
