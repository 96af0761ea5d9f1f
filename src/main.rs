use std::process::ExitCode;

use rowplane::cli;

/// Serving allocates and frees small objects on many threads, at which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), async |environment: cli::serve::Environment| {
        let checks = std::sync::Arc::new(environment.health);
        let router = rowplane::http::health::routes(checks);
        Ok(cli::serve::Application { router, stop: Box::pin(async {}) })
    })
}
