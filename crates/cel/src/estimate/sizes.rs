//! The sizes of values, and where values come from, as far as a walk through a tree has found them out.

use smol_str::SmolStr;

use super::Sizes;
use super::range::Range;
use crate::check::Checked;
use crate::syntax::ast::{Expr, Id, Literal};
use crate::types::{Generic, Type};

/// The accumulator of loops, which comes from nowhere.
const ACCUMULATOR: &str = "@result";

/// The origin of a value: a variable, and the fields and elements on the way from it.
pub(super) type Path = Vec<SmolStr>;

/// The sizes of what a list or map holds.
#[derive(Clone, Copy, Debug)]
pub struct ElementSizes {
    pub(super) is_list: bool,
    pub(super) key: Range,
    pub(super) value: Range,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Local {
    pub(super) name: SmolStr,
    pub(super) path: Path,
    pub(super) size: Option<Range>,
    pub(super) entry: Option<ElementSizes>,
}

/// A walk through a checked tree.
pub struct Walk<'c> {
    pub checked: &'c Checked,
    sizes_of: Sizes<'c>,
    pub(super) paths: Vec<Path>,
    pub(super) sizes: Vec<Option<Range>>,
    pub(super) entries: Vec<Option<ElementSizes>>,
    pub(super) locals: Vec<Local>,
}

/// A part of a call, as estimates of functions see it.
#[derive(Clone, Debug)]
pub struct Part {
    pub path: Path,
    pub of: Type,
    pub expr: Option<Id>,
    pub size: Option<Range>,
}

impl<'c> Walk<'c> {
    pub fn new(checked: &'c Checked, sizes_of: Sizes<'c>) -> Self {
        let count = checked.ast.len();
        let (paths, sizes) = (vec![Path::new(); count], vec![None; count]);
        Self { checked, sizes_of, paths, sizes, entries: vec![None; count], locals: Vec::new() }
    }

    pub(super) fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    pub(super) fn path(&self, id: Id) -> Path {
        if let Expr::Ident(name) = self.checked.ast.expr(id)
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[id as usize].clone()
    }

    pub(super) fn push(&mut self, name: &SmolStr, of: Id) {
        let (path, entry) = (self.path(of), self.entry(of));
        let size = self.size(of);
        self.locals.push(Local { name: name.clone(), path, size, entry });
    }

    pub(super) fn is_list(&self, range: Id) -> bool {
        match self.entry(range) {
            Some(entry) => entry.is_list,
            None => is_list(self.checked.type_of(range)),
        }
    }

    /// A variable for the keys of a range, or for its values.
    pub(super) fn push_of(&mut self, name: &SmolStr, range: Id, keys: bool) {
        let entry = self.entry(range);
        let size = entry.map(|entry| if keys { entry.key } else { entry.value });
        let step = match (keys, self.is_list(range)) {
            (true, true) => "@indices",
            (true, false) => "@keys",
            (false, true) => "@items",
            (false, false) => "@values",
        };
        let mut path = self.path(range);
        path.push(step.into());
        self.locals.push(Local { name: name.clone(), path, size, entry: None });
    }

    pub fn part(&mut self, id: Id) -> Part {
        let mut path = self.path(id);
        if path.first().is_some_and(|first| first == ACCUMULATOR) {
            path.clear();
        }
        let size = self.size(id);
        Part { path, of: self.checked.type_of(id).clone(), expr: Some(id), size }
    }

    pub fn size_or_unknown(&mut self, id: Id) -> Range {
        self.size(id).unwrap_or(Range::UNKNOWN)
    }

    pub fn size(&mut self, id: Id) -> Option<Range> {
        if let Some(known) = self.sizes[id as usize] {
            return Some(known);
        }
        let literal = match self.checked.ast.expr(id) {
            Expr::Literal(Literal::String(text)) => Some(text.chars().count()),
            Expr::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Expr::Literal(_) => Some(1),
            Expr::List { elements, .. } => Some(elements.len()),
            Expr::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = literal {
            return Some(Range::exactly(size as u64));
        }
        if let Some(size) = self.declared(&self.path(id)) {
            self.sizes[id as usize] = Some(size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(id)) {
            return Some(Range::exactly(1));
        }
        match self.checked.ast.expr(id) {
            Expr::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// The declared size of a value of this origin.
    pub fn declared(&self, path: &[SmolStr]) -> Option<Range> {
        let max = (self.sizes_of)(path)?;
        Some(Range { min: 0, max })
    }

    pub fn entry(&self, id: Id) -> Option<ElementSizes> {
        if let Some(entry) = self.entries[id as usize] {
            return Some(entry);
        }
        match self.checked.ast.expr(id) {
            Expr::Ident(name) => self.local(name)?.entry,
            _ => None,
        }
    }

    pub(super) fn copy(&mut self, to: Id, from: Id) {
        if let Some(size) = self.size(from) {
            self.sizes[to as usize] = Some(size);
        }
        if let Some(entry) = self.entry(from) {
            self.entries[to as usize] = Some(entry);
        }
    }

    /// Joins what two parts hold, if it is known of both.
    pub fn join_entries(&mut self, to: Id, one: Id, other: Id) {
        if let (Some(one), Some(other)) = (self.entry(one), self.entry(other)) {
            let (key, value) = (one.key.union(other.key), one.value.union(other.value));
            self.entries[to as usize] = Some(ElementSizes { is_list: one.is_list, key, value });
        }
    }
}

pub fn is_list(of: &Type) -> bool {
    matches!(of.as_applied(), Some(applied) if applied.of == Generic::List)
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => of.as_optional().is_some_and(is_scalar),
    }
}
