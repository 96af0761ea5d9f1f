//! An expression as a tree: nodes in one block, which name each other by number. A node may be named more than once.

use smol_str::SmolStr;

/// The number of a node.
pub type Id = u32;

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(SmolStr),
    Bytes(Vec<u8>),
}

#[derive(Debug)]
pub enum Expr {
    /// A part of the text that could not be parsed.
    Unspecified,
    Literal(Literal),
    Ident(SmolStr),
    Select {
        operand: Id,
        field: SmolStr,
        test: bool,
    },
    Call {
        function: SmolStr,
        target: Option<Id>,
        arguments: Box<[Id]>,
    },
    List {
        elements: Box<[Id]>,
        optional: Box<[bool]>,
    },
    Map(Box<[MapEntry]>),
    Struct {
        name: SmolStr,
        fields: Box<[Field]>,
    },
    Comprehension(Box<Comprehension>),
}

#[derive(Debug)]
pub struct MapEntry {
    pub key: Id,
    pub value: Id,
    pub optional: bool,
}

#[derive(Debug)]
pub struct Field {
    /// A node without meaning, which stands where the colon stands.
    pub at: Id,
    pub name: SmolStr,
    pub value: Id,
    pub optional: bool,
}

#[derive(Debug)]
pub struct Comprehension {
    pub range: Id,
    pub first: SmolStr,
    pub second: Option<SmolStr>,
    pub accumulator: SmolStr,
    pub init: Id,
    pub condition: Id,
    pub step: Id,
    pub result: Id,
}

impl Expr {
    /// The nodes that this one names.
    pub fn children(&self) -> Vec<Id> {
        match self {
            Self::Unspecified | Self::Literal(_) | Self::Ident(_) => Vec::new(),
            Self::Select { operand, .. } => vec![*operand],
            Self::Call { target, arguments, .. } => target.iter().chain(arguments).copied().collect(),
            Self::List { elements, .. } => elements.to_vec(),
            Self::Map(entries) => entries.iter().flat_map(|entry| [entry.key, entry.value]).collect(),
            Self::Struct { fields, .. } => fields.iter().map(|field| field.value).collect(),
            Self::Comprehension(all) => vec![all.range, all.init, all.condition, all.step, all.result],
        }
    }
}

#[derive(Debug)]
struct Node {
    expr: Expr,
    /// The byte where it is in the text.
    start: u32,
    /// How many nodes are below each other here.
    depth: u16,
}

#[derive(Debug, Default)]
pub struct Ast {
    nodes: Vec<Node>,
    pub root: Id,
}

impl Ast {
    pub fn push(&mut self, start: u32, expr: Expr) -> Id {
        let below = expr.children().into_iter().map(|child| self.depth(child)).max().unwrap_or_default();
        self.nodes.push(Node { expr, start, depth: below.saturating_add(1) });
        (self.nodes.len() - 1) as Id
    }

    pub fn expr(&self, id: Id) -> &Expr {
        &self.nodes[id as usize].expr
    }

    pub fn start(&self, id: Id) -> u32 {
        self.nodes[id as usize].start
    }

    pub fn depth(&self, id: Id) -> u16 {
        self.nodes[id as usize].depth
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// `a.b.c`, if that is all the expression says.
    pub fn dotted(&self, id: Id) -> Option<String> {
        let (mut at, mut parts) = (id, Vec::new());
        loop {
            match self.expr(at) {
                Expr::Ident(name) => {
                    parts.push(name.as_str());
                    parts.reverse();
                    return Some(parts.join("."));
                }
                Expr::Select { operand, field, test: false } => {
                    parts.push(field.as_str());
                    at = *operand;
                }
                _ => return None,
            }
        }
    }
}
