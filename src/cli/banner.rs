//! The message that a server is ready, for people.

use std::io::Write as _;
use std::path::PathBuf;

use crate::http::documents::discovery::version;
use crate::server::Server;
use crate::server::datastore::Datastore;

/// Prints the server's URL, and how kubectl reaches it.
pub fn print(server: &Server, store: &Datastore, shown: Option<PathBuf>) {
    // The standard output may be closed, which is no reason to end.
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{}", banner(server, store, shown)).and_then(|()| out.flush());
}

/// `shown` is the path by which the reader knows the kubeconfig.
fn banner(server: &Server, store: &Datastore, shown: Option<PathBuf>) -> String {
    let clients = match server.kubeconfig() {
        Some(path) => {
            let path = shown.unwrap_or_else(|| std::path::absolute(&path).unwrap_or(path));
            format!("export KUBECONFIG={}", for_shell(&path.to_string_lossy()))
        }
        None => "  users  of certificates of the trusted CAs, and of --token-auth-file".to_owned(),
    };
    format!(
        "rowplane {} (Kubernetes {})\n  store  {store}\n  url    {}\n{clients}\n",
        env!("CARGO_PKG_VERSION"),
        version::release(),
        server.url().unwrap_or_default(),
    )
}

/// Quotes a text if a shell would split or expand it.
pub(super) fn for_shell(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
