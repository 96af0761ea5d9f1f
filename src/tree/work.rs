//! Steps that walks over large values count, so that tests can bound work instead of time. Nothing is counted in a build.

#[cfg(not(test))]
#[inline(always)]
pub fn count(_: usize) {}

#[cfg(test)]
pub use counted::{count, of};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    /// The steps that `work` takes on this thread.
    pub fn of(work: impl FnOnce()) -> usize {
        let before = STEPS.get();
        work();
        STEPS.get() - before
    }
}
