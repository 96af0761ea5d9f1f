//! The memory that the program's own code and constants take.

#![allow(unsafe_code, reason = "madvise of the program's own pages")]

/// Takes the pages of the program's code and constants out of this process. What is used later comes back from the page cache, in
/// microseconds, or from the file if the system needed the memory meanwhile.
///
/// A start uses code that nothing uses afterwards, and the kernel maps 64 KB around each page that is used.
pub fn unmap() {
    #[cfg(target_os = "linux")]
    // SAFETY: `linux::unmap_of` has the type that the function calls, and needs no data.
    unsafe {
        libc::dl_iterate_phdr(Some(linux::unmap_of), std::ptr::null_mut());
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_void};

    /// The loader names the program itself first.
    const NO_OTHERS: c_int = 1;

    pub unsafe extern "C" fn unmap_of(
        program: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        _data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a structure that is valid during the call, and so are the headers that it counts.
        let (start, headers) = unsafe {
            let program = &*program;
            (program.dlpi_addr, std::slice::from_raw_parts(program.dlpi_phdr, program.dlpi_phnum.into()))
        };
        // SAFETY: the function takes no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.try_into().unwrap_or(4096);
        for header in headers {
            // What the loader has relocated counts as writable here.
            if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
                continue;
            }
            let (from, to) = (start + header.p_vaddr, start + header.p_vaddr + header.p_memsz);
            let from = from - from % page;
            // SAFETY: the loader has mapped these pages from the program's file, and nothing has written to them. So what comes back
            // is what was there, also for a thread that uses it now.
            unsafe { libc::madvise(from as *mut c_void, (to - from) as usize, libc::MADV_DONTNEED) };
        }
        NO_OTHERS
    }
}

#[cfg(test)]
mod tests {
    /// Kilobytes of the program's code that this process has in its memory.
    #[cfg(target_os = "linux")]
    fn resident() -> u64 {
        let program = std::env::current_exe().expect("a program");
        let program = program.to_str().expect("UTF-8");
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("readable");
        let mut is_code = false;
        let mut resident = 0;
        for line in maps.lines() {
            if line.ends_with(program) {
                is_code = line.contains(" r-xp ");
            } else if is_code && let Some(kilobytes) = line.strip_prefix("Rss:") {
                resident += kilobytes.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
                is_code = false;
            }
        }
        resident
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn code_that_ran_leaves_and_comes_back() {
        let before = resident();
        super::unmap();
        let after = resident();
        assert!(0 < after && after < before, "{before} kB, then {after} kB");
    }
}
