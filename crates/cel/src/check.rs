//! Finds the type of every part of an expression, as cel-go's `checker/checker.go` does, and tells what does not fit.

mod calls;
mod checker;
mod literals;
mod paths;
mod substitution;

pub use checker::check;

use std::collections::BTreeSet;

use smol_str::SmolStr;

use crate::functions::Overload;
use crate::syntax::ast::{Ast, Id};
use crate::types::Type;

/// The variable, type or function that a name or a call in an expression refers to.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable of a loop.
    Local,
    Variable(SmolStr),
    /// A type, which is a value.
    Type(Type),
    /// A function by its whole name. `qualified` means that what stands before the last dot is part of the name;
    /// `overloads` are those that fit.
    Function {
        name: SmolStr,
        qualified: bool,
        overloads: Vec<&'static Overload>,
    },
}

/// An expression that fits.
#[derive(Debug)]
pub struct Checked {
    pub ast: Ast,
    pub result: Type,
    /// The variables that it speaks of.
    pub uses: BTreeSet<SmolStr>,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
}

impl Checked {
    /// Whether work on it needs more stack than there may be.
    pub(crate) fn is_deep(&self) -> bool {
        self.ast.depth(self.ast.root) > crate::SHALLOW
    }

    pub fn type_of(&self, id: Id) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Dyn)
    }

    pub fn reference(&self, id: Id) -> Option<&Reference> {
        self.references.get(id as usize)?.as_ref()
    }
}
