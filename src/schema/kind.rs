//! `Kind`: what a kind is. Its name, and the shape of its objects.
//!
//! A kind is made once, with its resource or its subresource, and handed down. Whoever works on objects asks the kind;
//! only the doors here know which shapes there are.

use std::fmt;
use std::sync::Arc;

use super::names::Gvk;
use super::structural::Structural;
use super::types::{self, Fit, MessageId, Types};
use crate::json::Node;
use crate::tree::Map;

/// A kind in one version. A copy shares the shape.
#[derive(Clone, Debug)]
pub struct Kind {
    pub gvk: Gvk,
    pub shape: Shape,
}

/// How objects of a kind are made up.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A struct of upstream's.
    Go(GoShape),
    /// What a CustomResourceDefinition declares.
    Structural(Arc<Structural>),
    /// Nothing is known but the metadata that every object has.
    Opaque,
}

/// A message of [`Types`], with Go's rules about zero values.
#[derive(Clone)]
pub struct GoShape {
    pub types: Arc<Types>,
    pub message: MessageId,
}

impl fmt::Debug for GoShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.types.message(self.message).go_name())
    }
}

impl Kind {
    pub fn opaque(gvk: Gvk) -> Self {
        Self { gvk, shape: Shape::Opaque }
    }

    /// The message of a kind that has a protobuf form.
    pub fn go(&self) -> Option<&GoShape> {
        match &self.shape {
            Shape::Go(shape) => Some(shape),
            Shape::Structural(_) | Shape::Opaque => None,
        }
    }

    /// Another kind that stands in the same types, such as the list of this one.
    pub fn sibling(&self, gvk: &Gvk) -> Option<Self> {
        self.go()?.types.kind(gvk)
    }

    /// Makes of an object what reading it into the kind and printing it again makes of it. After an error all that did
    /// not fit is still there.
    pub fn conform(&self, object: &mut Map) -> Result<Fit, String> {
        match &self.shape {
            Shape::Go(shape) => types::conform(shape, None, object),
            Shape::Structural(shape) => shape.conform(object),
            Shape::Opaque => Ok(Fit::default()),
        }
    }

    /// As [`Kind::conform`], of an object that was read from this text. Numbers are then what they are spelled as, which
    /// is asked for where [`Kind::conform`] fails or finds that it matters, since finding it costs more than all the rest.
    pub fn conform_spelled(&self, text: &Node, object: &mut Map) -> Result<Fit, String> {
        match &self.shape {
            Shape::Go(shape) => types::conform(shape, Some(text), object),
            Shape::Structural(shape) => shape.conform(object),
            Shape::Opaque => Ok(Fit::default()),
        }
    }

    /// As upstream's converter reads maps into structs (`FromUnstructured`): gives numbers the form that their fields
    /// can hold; the error is the converter's.
    pub fn convert(&self, object: &mut Map) -> Result<(), String> {
        match &self.shape {
            Shape::Go(shape) => types::from_unstructured(shape, object),
            Shape::Structural(_) | Shape::Opaque => Ok(()),
        }
    }

    /// Gives an object that conforms its defaults, in place and in the order of its kind.
    pub fn default(&self, object: &mut Map) {
        match &self.shape {
            Shape::Go(shape) => shape.types.default(shape.message, object),
            Shape::Structural(shape) => shape.default(object),
            Shape::Opaque => {}
        }
    }

    /// An object that was stored before there were the defaults of now; `None` if it is none of the kind.
    pub fn complete(&self, mut object: Map) -> Option<Map> {
        self.conform(&mut object).ok()?;
        self.default(&mut object);
        Some(object)
    }

    /// What strict decoding says of a text: members that are unknown, and members that are there twice.
    pub fn problems(&self, text: &Node) -> Vec<String> {
        match &self.shape {
            Shape::Structural(shape) => shape.problems(text),
            Shape::Go(_) | Shape::Opaque => types::problems(self.go(), text),
        }
    }

    /// As [`Kind::problems`], of a text that upstream's converter reads: sorted, and without the keys of maps.
    pub fn converter_problems(&self, text: &Node) -> Vec<String> {
        types::converter_problems(self.go(), text)
    }
}
