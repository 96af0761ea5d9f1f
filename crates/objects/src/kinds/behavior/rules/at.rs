//! A value and where it stands: what rules read, and what errors name.
//!
//! Paths are links on the stack, so that walking an object costs nothing until there is an error to tell. Absent, null
//! and wrongly typed values read as Go's zero values: types are checked before.

use std::fmt;

use crate::tree::Value;

static NULL: Value = Value::Null;

/// A place in an object.
#[derive(Clone, Copy, Debug)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Fields(&'p [&'p str]),
    Index(usize),
    Key(&'p str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = match self.parent {
            Some(parent) => {
                parent.fmt(f)?;
                !parent.is_root()
            }
            None => false,
        };
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if inner => write!(f, ".{name}"),
            Step::Field(name) => f.write_str(name),
            Step::Fields(names) if inner => write!(f, ".{}", names.join(".")),
            Step::Fields(names) => f.write_str(&names.join(".")),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl Path<'_> {
    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

/// A value of an object, and its path.
#[derive(Clone, Copy, Debug)]
pub struct At<'v, 'p> {
    value: &'v Value,
    path: Path<'p>,
}

impl<'v> At<'v, 'static> {
    /// A whole object.
    pub fn root(value: &'v Value) -> Self {
        Self { value, path: Path { parent: None, step: Step::Root } }
    }

    /// A member of a whole object.
    pub fn member(object: &'v crate::fields::ObjectMap, name: &'static str) -> Self {
        let value = object.get(name).unwrap_or(&NULL);
        Self { value, path: Path { parent: None, step: Step::Field(name) } }
    }
}

impl<'v, 'p> At<'v, 'p> {
    pub fn path(&self) -> &Path<'p> {
        &self.path
    }

    pub fn value(&self) -> &'v Value {
        self.value
    }

    /// A member; null if absent.
    pub fn get<'s>(&'s self, name: &'s str) -> At<'v, 's> {
        self.child(self.value.get(name).unwrap_or(&NULL), Step::Field(name))
    }

    /// A member of members.
    pub fn dig<'s>(&'s self, names: &'s [&'s str]) -> At<'v, 's> {
        let value = names.iter().try_fold(self.value, |value, name| value.get(*name));
        self.child(value.unwrap_or(&NULL), Step::Fields(names))
    }

    /// The entry of a map.
    pub fn key<'s>(&'s self, key: &'s str) -> At<'v, 's> {
        self.child(self.value.get(key).unwrap_or(&NULL), Step::Key(key))
    }

    pub fn index<'s>(&'s self, index: usize) -> At<'v, 's> {
        self.child(self.value.get(index).unwrap_or(&NULL), Step::Index(index))
    }

    /// The same value where upstream says it stands.
    pub fn called<'s>(&'s self, name: &'s str) -> At<'v, 's>
    where
        'p: 's,
    {
        At { value: self.value, path: Path { parent: self.path.parent, step: Step::Field(name) } }
    }

    /// Another value under a name of this one.
    pub fn other<'w, 's>(&'s self, name: &'s str, value: &'w Value) -> At<'w, 's> {
        At { value, path: Path { parent: Some(&self.path), step: Step::Field(name) } }
    }

    /// Another value in the same place.
    pub fn holding<'w>(&self, value: &'w Value) -> At<'w, 'p> {
        At { value, path: self.path }
    }

    fn child<'s>(&'s self, value: &'v Value, step: Step<'s>) -> At<'v, 's> {
        At { value, path: Path { parent: Some(&self.path), step } }
    }

    /// The elements of a list.
    pub fn items<'s>(&'s self) -> impl Iterator<Item = At<'v, 's>> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(index, value)| self.child(value, Step::Index(index)))
    }

    /// The entries of a map.
    pub fn entries<'s>(&'s self) -> impl Iterator<Item = (&'v str, At<'v, 's>)>
    where
        'v: 's,
    {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), self.child(value, Step::Key(key))))
    }

    /// How many elements or entries there are.
    pub fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a pointer points to something.
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The text, or what defaulting puts in the place of an empty one.
    pub fn text_or(&self, default: &'static str) -> &'v str {
        match self.text() {
            "" => default,
            text => text,
        }
    }

    pub fn opt_text(&self) -> Option<&'v str> {
        self.value.as_str()
    }

    pub fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    pub fn opt_int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub fn flag(&self) -> bool {
        self.opt_flag() == Some(true)
    }

    pub fn opt_flag(&self) -> Option<bool> {
        self.value.as_bool()
    }

    /// The texts of a list.
    pub fn texts(&self) -> impl Iterator<Item = &'v str> + use<'v> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().map(|value| value.as_str().unwrap_or_default())
    }
}
