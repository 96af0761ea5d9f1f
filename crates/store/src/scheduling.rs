//! What threads ask of the system's scheduler.

#![allow(unsafe_code)]

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
        /// Of a policy that runs by slices: the slice, in nanoseconds.
        pub runtime: u64,
        deadline: u64,
        period: u64,
    }

    /// Those of the calling thread.
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
    use super::*;

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
