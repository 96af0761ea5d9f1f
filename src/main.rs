use std::process::ExitCode;

use rowplane::cli;

mod allocator;

use allocator::Allocator;

/// Serving allocates and frees small objects on many threads, at which the system's allocator is slow. Without huge pages
/// (`no_thp`): they gain little, and an idle server takes half as much again with them.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), allocator::give_back)
}
