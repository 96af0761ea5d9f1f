use std::process::ExitCode;

use rowplane::cli;

/// Serving allocates and frees small objects on many threads, at which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), cli::application::build)
}
