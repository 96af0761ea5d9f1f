//! `rowplane -h`: the program on one screen.

use clap::{Command, CommandFactory};

use super::args::Cli;

/// The commands in groups.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["serve", "up", "kube-apiserver", "etcd"]),
    ("Look", &["status", "doctor", "healthcheck", "console", "sql, find, changes", "audit", "auth"]),
    ("Past", &["asof, history, diff, blame, undo, record, open"]),
    ("Keep", &["backup, restore, migrate", "import, export", "certs"]),
    ("Test", &["branch", "try", "test", "envtest-assets"]),
    ("More", &["generate"]),
];

/// The meaning of the commands that share a line.
const TOGETHER: [(&str, &str); 4] = [
    ("sql, find, changes", "Ask by SELECT, find a text, see changes"),
    ("asof, history, diff, blame, undo, record, open", "See what was"),
    ("backup, restore, migrate", "Write, fill and copy stores"),
    ("import, export", "Move in from etcd or kine, and out to etcd"),
];

/// The flags of `rowplane serve` that most people need, with their values and their meanings in few words.
pub(super) const FLAGS: [(&str, &str, &str); 5] = [
    ("data-dir", "DIR", "certificates, kubeconfig, SQLite"),
    ("datastore", "URL", "sqlite:PATH, postgres://…, or memory:"),
    ("bind-address", "IP", "address to listen on (127.0.0.1)"),
    ("secure-port", "PORT", "port to listen on (6443)"),
    ("encryption-provider-config", "FILE", "which objects are stored encrypted"),
];

/// The text for `rowplane -h`, at most 30 lines of 80 columns.
pub fn text() -> String {
    let all = <Cli as CommandFactory>::command();
    let mut text = "rowplane, the Kubernetes API on SQLite or PostgreSQL\n\
                    Usage: rowplane [COMMAND] [FLAGS]; without a command, it serves\n"
        .to_owned();
    for (group, names) in GROUPS {
        for (index, name) in names.iter().enumerate() {
            let heading = if index == 0 { group } else { "" };
            let together = TOGETHER.iter().find(|(names, _)| names == name);
            let about = together.map_or_else(|| about(&all, name), |(_, about)| format!(" {about}"));
            text.push_str(&format!("{heading:<5} {name:<15} {about}\n"));
        }
    }
    text.push_str("\nFrequent flags of serve, also as environment variables (ROWPLANE_DATA_DIR):\n");
    for (name, value, meaning) in FLAGS {
        text.push_str(&format!("  {:<33} {meaning}\n", format!("--{name}={value}")));
    }
    text.push_str("All flags: rowplane serve --help. All of a command: rowplane COMMAND --help.\n");
    text
}

fn about(all: &Command, name: &str) -> String {
    all.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_on_the_screen() {
        let text = text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 30, "{}", lines.len());
        for line in &lines {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let all = <Cli as CommandFactory>::command();
        for command in all.get_subcommands() {
            let is_named = |row: &str| {
                let (names, _) = row.split_once("  ").unwrap_or((row, ""));
                names.split([',', ' ']).any(|name| name == command.get_name())
            };
            let row = lines.iter().find(|line| line.get(6..).is_some_and(is_named));
            assert!(row.is_some_and(|row| row.trim_end().len() > 22), "{}: {text}", command.get_name());
        }
        for (name, ..) in FLAGS {
            assert!(all.get_arguments().any(|flag| flag.get_long() == Some(name)), "{name}");
        }
    }
}
