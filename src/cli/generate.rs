//! `rowplane generate`: man pages, completions of shells, and the page of all flags, made from the command line's definition.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory, Subcommand};
use clap_complete::Shell;

use super::args::Cli;
use super::error::Error;

/// Characters of a line of the page of flags.
const WIDTH: usize = 120;

/// The text to make.
#[derive(Debug, Subcommand)]
pub enum GenerateCommand {
    /// Write a man page for each command into a directory, which is created
    Man {
        /// The directory
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print the completions of a shell: `source <(rowplane generate completions bash)`
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the page of all commands and flags, in Markdown
    Reference,
}

/// Writes what is asked for.
pub fn run(command: &GenerateCommand) -> Result<(), Error> {
    match command {
        GenerateCommand::Man { dir } => man(dir),
        GenerateCommand::Completions { shell } => print(&completions(*shell)),
        GenerateCommand::Reference => print(reference().as_bytes()),
    }
}

fn print(text: &[u8]) -> Result<(), Error> {
    io::stdout().lock().write_all(text).map_err(Error::Output)
}

fn man(dir: &Path) -> Result<(), Error> {
    let failed = |source| Error::Assets { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(<Cli as CommandFactory>::command(), dir).map_err(failed)
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut <Cli as CommandFactory>::command(), "rowplane", &mut text);
    text
}

/// The page `docs/flags.md`.
pub fn reference() -> String {
    let mut text = "# Commands and flags\n\nMade by `rowplane generate reference`; `./test` fails when it is outdated. Every flag \
                    of `rowplane serve` can\nalso be set by an environment variable: `--data-dir` by `ROWPLANE_DATA_DIR`. `rowplane \
                    kube-apiserver` takes the same flags\nwith kube-apiserver's defaults, and those of kube-apiserver's that have no \
                    effect here.\n"
        .to_owned();
    let mut all = <Cli as CommandFactory>::command();
    all.build();
    for command in all.get_subcommands().filter(|command| command.get_name() != "help") {
        section(command, &format!("rowplane {}", command.get_name()), &mut text);
    }
    text
}

fn section(command: &Command, name: &str, text: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    text.push_str(&format!("\n## {name}\n\n{about}.\n"));
    let shown =
        command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_id() != "help");
    let mut headings: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for argument in shown {
        let heading = argument.get_help_heading().unwrap_or_default();
        match headings.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => headings.push((heading, vec![argument])),
        }
    }
    for (heading, arguments) in headings {
        if !heading.is_empty() {
            text.push_str(&format!("\n### {heading}\n"));
        }
        text.push('\n');
        arguments.into_iter().for_each(|argument| item(argument, text));
    }
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        section(subcommand, &format!("{name} {}", subcommand.get_name()), text);
    }
}

/// Adds an argument to a list, in lines of at most `WIDTH` characters.
fn item(argument: &Arg, text: &mut String) {
    let names = argument.get_value_names().into_iter().flatten().map(|name| name.to_string());
    let value = names.collect::<Vec<_>>().join(" ");
    let is_switch = !argument.get_action().takes_values();
    let usage = match argument.get_long() {
        None => value,
        Some(long) if is_switch => format!("--{long}"),
        Some(long) if value == "BOOL" => format!("--{long}[=BOOL]"),
        Some(long) => format!("--{long}={value}"),
    };
    let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    if !aliases.is_empty() {
        help.push_str(&format!(" (also `--{}`)", aliases.join("`, `--")));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let is_told =
        argument.is_hide_default_value_set() || is_switch || defaults.iter().all(|value| value.is_empty());
    if !is_told && !matches!(argument.get_action(), ArgAction::SetTrue) {
        help.push_str(&format!(" [default: {}]", defaults.join(",")));
    }
    let mut line = format!("- `{usage}`:");
    for word in help.split_whitespace() {
        if line.chars().count() + word.chars().count() >= WIDTH {
            text.push_str(&format!("{line}\n"));
            line = " ".to_owned();
        }
        line.push_str(&format!(" {word}"));
    }
    text.push_str(&format!("{line}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of all commands, those below others after them.
    fn commands(command: &Command, before: &str, found: &mut Vec<String>) {
        for command in command.get_subcommands() {
            let name = format!("{before}-{}", command.get_name());
            commands(command, &name, found);
            found.push(name);
        }
    }

    #[test]
    fn every_command_has_a_man_page_and_completions() {
        let dir = tempfile::tempdir().unwrap();
        man(dir.path()).unwrap();
        let mut names = Vec::new();
        commands(&<Cli as CommandFactory>::command(), "rowplane", &mut names);
        assert!(names.contains(&"rowplane-auth-why".to_owned()), "{names:?}");
        for name in &names {
            let page = std::fs::read_to_string(dir.path().join(format!("{name}.1"))).expect(name);
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{page}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(completions(shell)).unwrap();
            for word in names.iter().filter_map(|name| name.rsplit_once('-')).map(|(_, word)| word) {
                assert!(text.contains(word), "{shell}: {word}");
            }
            assert!(text.contains("encryption-provider-config-automatic-reload"), "{shell}");
        }
    }

    #[test]
    fn the_page_of_all_flags_is_up_to_date() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/flags.md");
        let present = std::fs::read_to_string(page).unwrap_or_default();
        assert!(present == reference(), "run: rowplane generate reference > docs/flags.md");
        let mut names = Vec::new();
        commands(&<Cli as CommandFactory>::command(), "rowplane", &mut names);
        for name in names.iter().map(|name| name.replacen('-', " ", 1)) {
            let heading = name.strip_prefix("rowplane auth-").map(|name| format!("rowplane auth {name}"));
            assert!(
                present.contains(
                    &format!("# {}\n", heading.unwrap_or(name.clone()))
                        .replace("generate-", "generate ")
                        .replace("certs-", "certs ")
                        .replace("branch-", "branch ")
                ),
                "{name}"
            );
        }
    }
}
