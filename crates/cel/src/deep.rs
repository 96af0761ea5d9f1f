//! Work that goes deeper than the stack it is called on may be.

use std::thread;

/// Enough for the deepest tree that is read, of which only that becomes memory what is used.
const STACK: usize = 64 << 20;

/// Runs work on a stack that is large enough, and waits for it; `None` if the system has no thread to give.
pub fn run<R: Send>(work: impl FnOnce() -> R + Send) -> Option<R> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("expressions".to_owned()).stack_size(STACK);
        let worker = builder.spawn_scoped(scope, work).ok()?;
        Some(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
