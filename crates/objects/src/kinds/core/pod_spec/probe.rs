//! Probes and lifecycle hooks of containers.

use crate::kinds::behavior::rules::format::{header_name, port_name};
use crate::kinds::prelude::*;

/// The values of `stopSignal` on Linux.
const SIGNALS: [&str; 65] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMAX-1",
    "SIGRTMAX-10",
    "SIGRTMAX-11",
    "SIGRTMAX-12",
    "SIGRTMAX-13",
    "SIGRTMAX-14",
    "SIGRTMAX-2",
    "SIGRTMAX-3",
    "SIGRTMAX-4",
    "SIGRTMAX-5",
    "SIGRTMAX-6",
    "SIGRTMAX-7",
    "SIGRTMAX-8",
    "SIGRTMAX-9",
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];

/// Validates the probes of a long-running container. `grace` is the pod's termination grace period.
pub fn probes(container: &At<'_, '_>, grace: i64, errors: &mut Errors) {
    for (name, succeeds_once) in [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)]
    {
        let at = container.get(name);
        if !at.is_set() {
            continue;
        }
        probe(&at, grace, errors);
        if succeeds_once {
            let threshold = at.get("successThreshold");
            // The default replaces zero by one.
            if !matches!(threshold.int(), 0 | 1) {
                errors.invalid(&threshold, threshold.int(), "must be 1");
            }
        } else if at.get("terminationGracePeriodSeconds").is_set() {
            let period = at.get("terminationGracePeriodSeconds");
            errors.invalid(&period, period.int(), "must not be set for readinessProbes");
        }
    }
}

fn probe(at: &At<'_, '_>, grace: i64, errors: &mut Errors) {
    handler(at, &["exec", "httpGet", "tcpSocket", "grpc"], grace, errors);
    let seconds =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    errors.none_negative(at, &seconds);
    let period = at.get("terminationGracePeriodSeconds");
    if period.opt_int().is_some_and(|period| period <= 0) {
        errors.invalid(&period, period.int(), "must be greater than 0");
    }
}

fn handler(at: &At<'_, '_>, kinds: &[&str], grace: i64, errors: &mut Errors) {
    let mut found = false;
    for kind in kinds {
        let action = at.get(kind);
        if !action.is_set() {
            continue;
        }
        if found {
            errors.forbidden(&action, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match *kind {
            "exec" if action.get("command").is_empty() => errors.required(&action.get("command"), ""),
            "httpGet" => http_get(&action, errors),
            "tcpSocket" | "grpc" => port_or_name(&action.get("port"), errors),
            "sleep" => sleep(&action, grace, errors),
            _ => {}
        }
    }
    if !found {
        errors.required(at, "must specify a handler type");
    }
}

fn http_get(at: &At<'_, '_>, errors: &mut Errors) {
    // The default replaces an empty path by /.
    port_or_name(&at.get("port"), errors);
    let scheme = at.get("scheme");
    errors.one_of(&scheme, scheme.text_or("HTTP"), &["HTTP", "HTTPS"]);
    let headers = at.get("httpHeaders");
    for header in headers.items() {
        let name = header.get("name").text();
        errors.invalid_each(&headers, name, header_name(name));
    }
}

/// Validates a number or name of a port.
pub fn port_or_name(at: &At<'_, '_>, errors: &mut Errors) {
    match at.opt_text() {
        Some(name) => errors.invalid_each(at, name, port_name(name)),
        None => errors.port(at),
    }
}

fn sleep(at: &At<'_, '_>, grace: i64, errors: &mut Errors) {
    let seconds = at.get("seconds").int();
    if !(0..=grace).contains(&seconds) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid(at, seconds, &why);
    }
}

/// Validates the lifecycle hooks of a container; `os` is the pod's operating system.
pub fn lifecycle(at: &At<'_, '_>, grace: i64, os: &At<'_, '_>, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        let hook = at.get(name);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], grace, errors);
        }
    }
    let signal = at.get("stopSignal");
    let Some(text) = signal.opt_text() else { return };
    match os.get("name").text() {
        _ if !os.is_set() => {
            errors.forbidden(&signal, "may not be set for containers with empty `spec.os.name`")
        }
        "windows" => {
            errors.one_of(&signal, text, &["SIGKILL", "SIGTERM"]);
        }
        "linux" => {
            errors.one_of(&signal, text, &SIGNALS);
        }
        _ => {}
    }
}
