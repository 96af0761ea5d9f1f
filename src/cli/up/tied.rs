//! The start of a program that ends with this one, even if this one is killed.
//!
//! On Linux the kernel sends SIGTERM to a process whose parent has ended, if the process has asked for that. It can ask only
//! for itself, so `rowplane` is started first, asks, and becomes the program. On other systems a program outlives a
//! `rowplane up` that is killed with SIGKILL.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::cli::error::Error;

/// The first argument of a process that becomes another program; no subcommand, since it is nobody's to type.
const NAME: &str = "--become";

/// A command for a program, which belongs to a group of its own: signals of a terminal reach its parent alone.
///
/// It has to be spawned by the main thread: the kernel takes the end of the thread that spawned it for its parent's.
pub fn command(program: &Path) -> std::io::Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.arg(NAME).arg(std::process::id().to_string()).arg(program).process_group(0);
    Ok(command)
}

/// The parent, the program and its arguments, if this process is to become one.
pub fn asked(arguments: &[OsString]) -> Option<(&OsStr, &OsStr, &[OsString])> {
    match arguments {
        [_, name, parent, program, rest @ ..] if name == NAME => {
            Some((parent.as_os_str(), program.as_os_str(), rest))
        }
        _ => None,
    }
}

/// Becomes the program. Returns only if that fails.
pub fn become_program(parent: &OsStr, program: &OsStr, arguments: &[OsString]) -> Error {
    let failed = |source| Error::Command { name: program.to_owned(), source };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
    {
        return failed(error.into());
    }
    let present = rustix::process::getppid().map(|id| id.as_raw_nonzero().to_string());
    if present.as_deref().map(OsStr::new) != Some(parent) {
        return Error::Refused("the parent has ended already".to_owned());
    }
    failed(Command::new(program).args(arguments).exec())
}
