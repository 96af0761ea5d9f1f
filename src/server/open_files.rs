//! How many files and sockets this process may open, and how many connections that allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::http::server;

/// Open files other than connections of clients: the database, its pool, the log, standard streams.
const RESERVED: u64 = 256;

/// Raises the soft limit to the hard one. Shells and service managers keep it low for programs that use `select`.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the number of open files");
    }
}

/// The present limit; `None` if there is none.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Reduces the limits of connections to the number of files that can be opened.
pub fn fit(limits: server::Limits, files: Option<u64>) -> server::Limits {
    let Some(files) = files else { return limits };
    let room = usize::try_from(files.saturating_sub(RESERVED)).unwrap_or(usize::MAX).max(2);
    let unauthenticated_connections = limits.unauthenticated_connections.min(room / 2);
    let connections = limits.connections.min(room - unauthenticated_connections);
    let fitted = server::Limits { connections, unauthenticated_connections, ..limits };
    if fitted != limits {
        tracing::warn!(
            files,
            connections,
            unauthenticated_connections,
            "fewer connections, as few files may be open"
        );
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_the_database() {
        let limits =
            server::Limits { connections: 20_000, unauthenticated_connections: 1000, ..Default::default() };
        let fitted = |files| {
            let fitted = fit(limits, files);
            (fitted.connections, fitted.unauthenticated_connections)
        };
        assert_eq!(fitted(None), (20_000, 1000));
        assert_eq!(fitted(Some(1 << 20)), (20_000, 1000));
        assert_eq!(fitted(Some(4096)), (2840, 1000));
        assert_eq!(fitted(Some(1024)), (384, 384));
        assert_eq!(fitted(Some(10)), (1, 1));
    }
}
