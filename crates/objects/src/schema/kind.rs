//! `Kind`: the name of a kind and the shape of its objects.
//!
//! A kind is made once, with its resource or subresource, and handed down. Code that works on objects asks the kind;
//! only the functions here distinguish the shapes.

use std::sync::Arc;

use super::names::Gvk;
use super::structural::{DefaultsTooLarge, Structural};
use super::types::{self, Fit, GoShape, Types};
use crate::json::Node;
use crate::tree::Map;

/// A kind in one version. Clones share the shape.
#[derive(Clone, Debug)]
pub struct Kind {
    pub gvk: Gvk,
    pub shape: Shape,
}

/// The structure of a kind's objects.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A Go struct of upstream's.
    Go(GoShape),
    /// The schema that a CustomResourceDefinition declares.
    Structural(Arc<Structural>),
    /// Unknown, except for the metadata that every object has.
    Opaque,
}

impl Kind {
    pub fn opaque(gvk: Gvk) -> Self {
        Self { gvk, shape: Shape::Opaque }
    }

    /// The message of a kind with a Go type.
    pub fn go(&self) -> Option<&GoShape> {
        match &self.shape {
            Shape::Go(shape) => Some(shape),
            Shape::Structural(_) | Shape::Opaque => None,
        }
    }

    /// Another kind of the same types, such as the list of this one.
    pub fn sibling(&self, gvk: &Gvk) -> Option<Self> {
        self.go()?.types.kind(gvk)
    }

    /// Changes an object as if it had been decoded into the kind's type and printed again. After an error, all members
    /// that did not fit are still in the object.
    pub fn conform(&self, object: &mut Map) -> Result<Fit, String> {
        match &self.shape {
            Shape::Go(shape) => types::conform(shape, None, object),
            Shape::Structural(shape) => shape.conform(object),
            Shape::Opaque => Ok(Fit::default()),
        }
    }

    /// Like [`Kind::conform`], for an object from the store.
    pub fn conform_stored(&self, object: &mut Map) -> Result<(), String> {
        match &self.shape {
            Shape::Structural(shape) => shape.conform_stored(object),
            Shape::Go(_) | Shape::Opaque => self.conform(object).map(drop),
        }
    }

    /// Like [`Kind::conform`], for an object that was read from this text. Numbers are read as they are spelled. Only
    /// needed if [`Kind::conform`] fails or reports that the spelling matters, since reading the spelling costs more
    /// than everything else.
    pub fn conform_spelled(&self, text: &Node, object: &mut Map) -> Result<Fit, String> {
        match &self.shape {
            Shape::Go(shape) => types::conform(shape, Some(text), object),
            Shape::Structural(shape) => shape.conform(object),
            Shape::Opaque => Ok(Fit::default()),
        }
    }

    /// Gives numbers the form that their fields can hold, as upstream's converter does when it reads maps into structs
    /// (`FromUnstructured`). The error is the converter's.
    pub fn convert(&self, object: &mut Map) -> Result<(), String> {
        match &self.shape {
            Shape::Go(shape) => types::from_unstructured(shape, object),
            Shape::Structural(_) | Shape::Opaque => Ok(()),
        }
    }

    /// Sets the defaults in a conforming object, in place and in the order of its type.
    pub fn default(&self, object: &mut Map) -> Result<(), DefaultsTooLarge> {
        match &self.shape {
            Shape::Go(shape) => shape.types.default(shape.message, object),
            Shape::Structural(shape) => shape.default(object)?,
            Shape::Opaque => {}
        }
        Ok(())
    }

    /// Whether an object from the store stays as it is when [`Kind::conform_stored`] and [`Kind::default`] see it.
    pub fn is_settled(&self, object: &Map) -> bool {
        if let Shape::Structural(shape) = &self.shape {
            return shape.is_settled(object);
        }
        let mut read = object.clone();
        let is_read = self.conform_stored(&mut read).is_ok() && self.default(&mut read).is_ok();
        is_read && read == *object
    }

    /// Conforms and defaults an object that was stored before the present defaults existed; `None` if it does not fit
    /// the kind.
    pub fn complete(&self, mut object: Map) -> Option<Map> {
        self.conform(&mut object).ok()?;
        self.default(&mut object).ok()?;
        Some(object)
    }

    /// The problems that strict decoding finds in a text: unknown members and repeated members.
    pub fn problems(&self, text: &Node) -> Vec<String> {
        match &self.shape {
            Shape::Structural(shape) => shape.problems(text),
            Shape::Go(_) | Shape::Opaque => types::problems(self.go(), text),
        }
    }

    /// Like [`Kind::problems`], as upstream's converter reports them: sorted, and without keys of maps in the paths.
    pub fn converter_problems(&self, text: &Node) -> Vec<String> {
        types::converter_problems(self.go(), text)
    }
}

impl Types {
    /// A kind of these types. The kinds of meta/v1 exist in every API version.
    pub fn kind(self: &Arc<Self>, gvk: &Gvk) -> Option<Kind> {
        let message = self.message_of(gvk)?;
        let shape = Shape::Go(GoShape { types: self.clone(), message });
        Some(Kind { gvk: gvk.clone(), shape })
    }
}
