//! Tests on a server of their own, as [`crate::test`] writes them.

use super::{Builder, Server};

/// Runs a test beside a server, on a runtime of this thread or on one with several. The server ends with the test, whether that
/// passes or panics: requests that are under way are cut, watches too.
///
/// # Panics
///
/// If the server does not start.
pub fn run<T>(builder: Builder, is_threaded: bool, test: impl AsyncFnOnce(&Server) -> T) -> T {
    let mut runtime = match is_threaded {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build().unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let server = builder.start().await;
        let server = server
            .unwrap_or_else(|error| panic!("the server of the test does not start: {}", error.one_line()));
        test(&server).await
    })
}
