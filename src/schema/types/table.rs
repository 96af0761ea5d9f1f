//! The messages of `proto/`, as `build.rs` writes them down (`build/types.rs`), in the program's read-only memory.

use super::{
    Absence, Cardinality, Field, FieldBits, FieldKind, Format, Member, Merging, Message, MessageId, Role,
    Strategic, Union,
};
use crate::schema::names::GroupVersion;
use crate::tree::Text;

pub(super) static MESSAGES: &[Message] = &include!(concat!(env!("OUT_DIR"), "/types.rs"));
