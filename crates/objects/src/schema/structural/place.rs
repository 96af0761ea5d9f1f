//! The place of a value in its object.

use std::fmt;

/// A place, as links on the stack: a walk costs nothing until there is an error to tell.
#[derive(Clone, Copy, Debug)]
pub struct ValuePath<'p> {
    parent: Option<&'p ValuePath<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    /// The place of the whole value, empty for an object.
    Root(&'p str),
    Property(&'p str),
    Key(&'p str),
    Item(usize),
}

impl<'p> ValuePath<'p> {
    pub const ROOT: ValuePath<'static> = ValuePath::root("");

    /// The whole value, which stands in something larger.
    pub const fn root(path: &'p str) -> Self {
        ValuePath { parent: None, step: Step::Root(path) }
    }

    /// A member that the schema names.
    pub fn property(&'p self, name: &'p str) -> Self {
        ValuePath { parent: Some(self), step: Step::Property(name) }
    }

    /// A member of a map.
    pub fn key(&'p self, key: &'p str) -> Self {
        ValuePath { parent: Some(self), step: Step::Key(key) }
    }

    pub fn item(&'p self, index: usize) -> Self {
        ValuePath { parent: Some(self), step: Step::Item(index) }
    }

    pub fn is_root(&self) -> bool {
        matches!(self.step, Step::Root(_))
    }

    /// The path as kube-openapi spells it: within the whole value, and with keys of maps behind a dot.
    pub fn dotted(&self) -> String {
        let mut out = String::new();
        self.write_dotted(&mut out);
        out
    }

    fn write_dotted(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write_dotted(out);
        }
        match self.step {
            Step::Root(_) => {}
            Step::Property(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Key(key) => {
                out.push('.');
                out.push_str(key);
            }
            Step::Item(index) => out.push_str(&format!("[{index}]")),
        }
    }
}

/// The path as apimachinery's `field.Path` spells it: with keys of maps in brackets.
impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root(path) => f.write_str(path),
            Step::Property(name)
                if self.parent.is_some_and(|parent| matches!(parent.step, Step::Root(""))) =>
            {
                f.write_str(name)
            }
            Step::Property(name) => write!(f, ".{name}"),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Item(index) => write!(f, "[{index}]"),
        }
    }
}
