//! Output of commands: text for people, JSON or YAML for programs.

use std::io::{self, IsTerminal as _, Write as _};

use clap::{Args, ValueEnum};

use super::error::Error;
use crate::codec::yaml;
use crate::tree::Value;

/// The format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Aligned text for people.
    Table,
    Json,
    Yaml,
}

#[derive(Clone, Copy, Debug, Args)]
pub struct OutputArgs {
    /// The format of the output: table for people, json or yaml for programs
    #[arg(
        long = "output",
        short = 'o',
        value_name = "FORMAT",
        value_enum,
        default_value = "table",
        hide_possible_values = true
    )]
    pub output: Output,
}

impl OutputArgs {
    /// Prints `value` for programs, or else the text for people.
    pub fn print(self, value: &Value, text: impl FnOnce(Palette) -> String) -> Result<(), Error> {
        print(&self.render(value, text))
    }

    /// The text that [`OutputArgs::print`] prints.
    pub fn render(self, value: &Value, text: impl FnOnce(Palette) -> String) -> String {
        match self.output {
            Output::Table => text(Palette::of_stdout()),
            Output::Json => serde_json::to_string_pretty(value).unwrap_or_default() + "\n",
            Output::Yaml => yaml::write(value),
        }
    }
}

/// Prints on standard output.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
}

/// Colours, if the output is a terminal and `NO_COLOR` is not set.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    is_colored: bool,
}

impl Palette {
    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Self = Self { is_colored: false };

    fn of_stdout() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { is_colored: io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb }
    }

    pub fn good(self, text: &str) -> String {
        self.colored(text, "32")
    }

    pub fn bad(self, text: &str) -> String {
        self.colored(text, "31")
    }

    pub fn doubtful(self, text: &str) -> String {
        self.colored(text, "33")
    }

    fn colored(self, text: &str, code: &str) -> String {
        if self.is_colored { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A number of bytes with a unit, `1.2 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let (mut size, mut unit) = (count as f64 / 1024.0, UNITS[0]);
    for larger in &UNITS[1..] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    format!("{size:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        let shown = [0, 1023, 1024, 1 << 20, 3 << 29, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 bytes", "1023 bytes", "1.0 KiB", "1.0 MiB", "1.5 GiB", "16384.0 PiB"]);
    }

    #[test]
    fn colors_are_only_added_where_they_are_shown() {
        assert_eq!(Palette::PLAIN.bad("x"), "x");
        assert_eq!(Palette { is_colored: true }.good("x"), "\u{1b}[32mx\u{1b}[0m");
    }
}
