//! Priorities on the processors: requests of threads to the system's scheduler, and hints that the threads of a process give
//! each other.

#![allow(unsafe_code, reason = "system calls that rustix does not have")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The hints that the threads of a process give each other: all of its clusters share its processors. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Scheduling(Arc<Hints>);

#[derive(Debug, Default)]
struct Hints {
    /// How many works of stores are under way.
    works: AtomicUsize,
}

impl Scheduling {
    pub fn begin_store_work(&self) -> StoreWork {
        self.0.works.fetch_add(1, Ordering::Relaxed);
        StoreWork(self.clone())
    }

    /// Whether some store's threads do something for which writes wait.
    pub fn has_store_work(&self) -> bool {
        self.0.works.load(Ordering::Relaxed) > 0
    }
}

/// Lives while a store's threads do something for which writes wait: a transaction, its sync, a checkpoint.
///
/// These threads compute briefly and then wait for the disk. Whoever computes at length lets them run first
/// ([`Scheduling::has_store_work`]). The system's scheduler does not see to that: to be woken soon, a thread must have had less
/// than its share, and if it had more, it waits until the other one has used up its slice, which is noticed at a tick of the
/// clock (4 ms with 250 ticks a second).
#[derive(Debug)]
#[must_use]
pub struct StoreWork(Scheduling);

impl Drop for StoreWork {
    fn drop(&mut self) {
        self.0.0.works.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long the calling thread has computed. Unlike the time that has passed, it leaves out when other threads had the
/// processor.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Lets the calling thread run soon after it is woken, beside threads that compute. It is meant for threads that work briefly,
/// and that others wait for.
///
/// Linux lets a thread that has been woken by a device wait until the one that runs has used up its slice, which it notices at a
/// tick of the clock: with 250 ticks a second, on a processor that another thread keeps busy, an fdatasync of 0.3 ms took
/// 3.9 ms. A thread with a shorter slice goes first (Linux 6.12; earlier ones ignore the wish). No privilege is needed for that.
/// Elsewhere, or where the system refuses, nothing changes.
pub fn run_soon() {
    #[cfg(target_os = "linux")]
    linux::shorten_slice();
}

/// Whether the calling thread has asked for that; always on kernels that do not know the wish.
#[cfg(test)]
pub fn runs_soon() -> bool {
    #[cfg(target_os = "linux")]
    return linux::attributes().is_some_and(|asked| asked.runtime == 0 || asked.runtime == linux::SLICE);
    #[cfg(not(target_os = "linux"))]
    true
}

#[cfg(target_os = "linux")]
mod linux {
    /// Nanoseconds, the shortest that Linux grants.
    pub const SLICE: u64 = 100_000;
    /// The policies of threads that run by slices (SCHED_OTHER, SCHED_BATCH). Others have priorities or deadlines.
    const SLICED: [u32; 2] = [0, 3];

    /// The first version of `struct sched_attr` (man 2 sched_setattr).
    #[repr(C)]
    #[derive(Debug, Default)]
    pub struct Attributes {
        size: u32,
        pub policy: u32,
        flags: u64,
        pub nice: i32,
        priority: u32,
        /// The slice in nanoseconds, for a policy that runs by slices.
        pub runtime: u64,
        deadline: u64,
        period: u64,
    }

    /// The attributes of the calling thread.
    pub fn attributes() -> Option<Attributes> {
        let mut attributes = Attributes::default();
        let size = size_of::<Attributes>();
        // SAFETY: the kernel writes at most `size` bytes into the structure; 0 is the calling thread.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        (result == 0).then_some(attributes)
    }

    pub fn shorten_slice() {
        let Some(attributes) = attributes().filter(|attributes| SLICED.contains(&attributes.policy)) else {
            return;
        };
        let attributes = Attributes { flags: 0, runtime: SLICE, ..attributes };
        // SAFETY: the kernel reads as many bytes of the structure as its `size` says, and the structure outlives the call.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        if result != 0 {
            tracing::debug!(error = %std::io::Error::last_os_error(), "the scheduler refuses a shorter slice");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_process_has_hints_of_its_own() {
        let (one, other) = (Scheduling::default(), Scheduling::default());
        let work = one.begin_store_work();
        assert!(one.clone().has_store_work() && !other.has_store_work());
        drop(work);
        assert!(!one.has_store_work());
    }

    #[test]
    fn only_computing_counts() {
        let (began, before) = (Instant::now(), processor_time());
        std::thread::sleep(Duration::from_millis(20));
        let slept = processor_time() - before;
        assert!(slept < began.elapsed() / 2, "{slept:?}");
        // Ends only if computing counts.
        while processor_time() - before < slept + Duration::from_millis(1) {
            std::hint::spin_loop();
        }
    }

    /// A nice value cannot be taken back without privileges, so a wish that resets it would be refused.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_rest_of_a_thread_s_attributes_stays() {
        let before = linux::attributes().expect("known");
        run_soon();
        let after = linux::attributes().expect("known");
        assert_eq!((after.policy, after.nice), (before.policy, before.nice));
        // Before 6.12 the kernel tells no slice.
        assert!(runs_soon(), "{after:?}");
    }
}
