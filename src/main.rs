use std::process::ExitCode;

use rowplane::cli::{self, Upkeep};

mod allocator;

use allocator::Allocator;

/// Serving allocates and frees small objects on many threads, which is slow with the system's allocator. Huge pages are
/// off (`no_thp`): they gain little, and would make an idle server use half as much memory again.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    allocator::share();
    let upkeep = Upkeep { give_back: allocator::give_back, tidy: allocator::tidy };
    cli::main(std::env::args_os().collect(), upkeep)
}
