//! Goes through a plan. An error is a value that goes up until `&&`, `||` or a loop takes it; what an error goes past is
//! paid for as upstream does. A budget that is gone ends all.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowplane_values::regexp::{Regexp, Room};
use smol_str::SmolStr;

use super::{Attribute, Base, Call, Node, NodeId, Operator, Program, Slot};
use crate::arithmetic;
use crate::deep;
use crate::library::lists;
use crate::library::table::{self, Cost};
use crate::operators;
use crate::value::{Entries, Error, Key, List, Map, Text, Value};

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Error(Error),
    /// It costs more than it may.
    Limit,
    /// Somebody has given up on it.
    Interrupted,
    /// Upstream cannot tell what sorting costs of a list that is an error, and ends the evaluation.
    Unsortable,
}

impl Fault {
    pub fn message(&self) -> &str {
        match self {
            Self::Error(error) => error.message(),
            Self::Limit => "operation cancelled: actual cost limit exceeded",
            Self::Interrupted => "operation interrupted",
            Self::Unsortable => {
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            }
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(super) type EvalResult<'a> = Result<Value<'a>, Fault>;

/// The cost limit of an evaluation, and what is spent and left.
#[derive(Debug)]
pub struct Budget<'b> {
    pub limit: u64,
    pub spent: u64,
    /// The bytes that are left for the programs of patterns that are no constants.
    pub patterns: usize,
    /// Becomes true when nobody waits for the value any more.
    pub interrupt: Option<&'b AtomicBool>,
}

/// Steps of a search, a tenth of a second at worst.
const LONG_SEARCH: u64 = 200_000;

/// The most bytes of such programs. Nobody who means well needs more, and each program takes milliseconds to compile.
pub const PATTERNS: usize = 16 << 20;

impl Budget<'_> {
    pub fn of(limit: u64) -> Self {
        Self { limit, spent: 0, patterns: PATTERNS, interrupt: None }
    }

    fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(Fault::Limit) } else { Ok(()) }
    }
}

/// The source of variables; each variable is asked for at most once in an evaluation.
pub trait Variables<'a>: Sync {
    /// `None` for a variable that is not there.
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

/// A variable of a loop.
#[derive(Clone, Debug)]
pub(super) enum Local<'a> {
    Empty,
    /// Evaluated when it is first looked at.
    Lazy(NodeId),
    Ready(Result<Value<'a>, Error>),
}

pub(super) struct Frame<'a, 'e> {
    pub(super) values: Values<'a>,
    budget: Budget<'e>,
}

/// The values that a program refers to: its variables, and those of its loops.
pub(super) struct Values<'a> {
    pub(super) program: &'a Program,
    variables: Vec<Option<Result<Value<'a>, Error>>>,
    pub(super) locals: Vec<Local<'a>>,
}

impl<'a> Values<'a> {
    /// The value of a variable where it is; `None` if it is still to be made, or an error.
    pub(super) fn held(&self, base: &Base) -> Option<&Value<'a>> {
        let known = match base {
            Base::Local(slot) => match &self.locals[*slot as usize] {
                Local::Ready(known) => known,
                Local::Empty | Local::Lazy(_) => return None,
            },
            Base::Variable(number) => self.variables[*number as usize].as_ref()?,
            Base::Node(_) | Base::Conditional { .. } => return None,
        };
        known.as_ref().ok()
    }
}

/// The plan is not much deeper than the tree, of which each level takes some hundreds of bytes of stack.
const SHALLOW: u16 = 64;

impl Program {
    /// The value, or why there is none; what it cost is in the budget either way.
    pub fn evaluate<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        budget: &mut Budget<'_>,
    ) -> Result<Value<'a>, Fault> {
        let copy = Budget { ..*budget };
        let (outcome, spent, patterns) = if self.depth <= SHALLOW {
            self.run(variables, copy)
        } else {
            let before = (Err(Fault::Interrupted), budget.spent, budget.patterns);
            deep::run(|| self.run(variables, copy)).unwrap_or(before)
        };
        (budget.spent, budget.patterns) = (spent, patterns);
        outcome
    }

    fn run<'a>(&'a self, variables: &dyn Variables<'a>, budget: Budget<'_>) -> (EvalResult<'a>, u64, usize) {
        let variables = self.variables.iter().map(|name| variables.get(name)).collect();
        let locals = vec![Local::Empty; self.slots];
        let mut frame = Frame { values: Values { program: self, variables, locals }, budget };
        let outcome = frame.node(self.root);
        (outcome, frame.budget.spent, frame.budget.patterns)
    }
}

/// The value of a part of a call, or an error that does not end the evaluation.
pub(super) type Part<'a> = Result<Value<'a>, Error>;

/// An error becomes a value; what ends the evaluation goes on.
fn settled(outcome: EvalResult<'_>) -> Result<Part<'_>, Fault> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Error(error)) => Ok(Err(error)),
        Err(end) => Err(end),
    }
}

impl<'a> Frame<'a, '_> {
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.budget.spend(cost)
    }

    pub(super) fn check_interrupt(&self) -> Result<(), Fault> {
        let is_over = self.budget.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed));
        if is_over { Err(Fault::Interrupted) } else { Ok(()) }
    }

    /// An error becomes a value.
    pub(super) fn part(&mut self, node: NodeId) -> Result<Part<'a>, Fault> {
        settled(self.node(node))
    }

    /// The value of a node. This function recurses, so that whatever takes much stack is in functions of its own.
    pub(super) fn node(&mut self, id: NodeId) -> EvalResult<'a> {
        let program = self.values.program;
        match &program.nodes[id as usize] {
            Node::Constant(value) => Ok(borrowed(value)),
            Node::Attribute(attribute) => self.observed(attribute),
            Node::Test(_)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::NotFalse(_)
            | Node::Member { .. }
            | Node::Matches { .. } => self.truth(id)?.into_outcome(),
            Node::Negate(operand) => {
                let value = self.part(*operand)?;
                self.spend(1)?;
                Ok(arithmetic::negate(&value?)?)
            }
            Node::Binary { operator, left, right, cost } => {
                Ok(self.operands(*left, *right, *cost, |left, right| apply(*operator, left, right))??)
            }
            Node::Append { to, element } => self.append(*to, *element),
            Node::Call(call) => self.call(call),
            Node::OptionalOr { left, right, value } => self.optional_or(*left, *right, *value),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map { entries } => self.map(entries),
            Node::Struct { name, fields } => self.structure(name, fields),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// The result of an operator on two operands.
    pub(super) fn operands<R>(
        &mut self,
        left: NodeId,
        right: NodeId,
        cost: Cost,
        apply: impl FnOnce(&Value<'a>, &Value<'a>) -> Result<R, Error>,
    ) -> Result<Result<R, Error>, Fault> {
        match (self.part(left)?, self.part(right)?) {
            (Ok(left), Ok(right)) => {
                self.spend(cost.of_two(&left, &right))?;
                Ok(apply(&left, &right))
            }
            (left, right) => {
                let size = |of: &Part<'_>| of.as_ref().map_or(1, Value::inner_size);
                self.spend(cost.of_sizes(|| size(&left), || size(&right)))?;
                Ok(Err(left.err().or(right.err()).unwrap_or_else(Error::no_such_overload)))
            }
        }
    }

    pub(super) fn variable(&self, number: u32) -> Part<'a> {
        match &self.values.variables[number as usize] {
            Some(value) => value.clone(),
            None => {
                let name = &self.values.program.variables[number as usize];
                Err(Error::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    pub(super) fn is_constant(&self, node: NodeId) -> bool {
        matches!(self.values.program.nodes[node as usize], Node::Constant(_))
    }

    /// Adds an element to the list of a loop, which nobody else holds.
    #[inline(never)]
    fn append(&mut self, to: Slot, element: NodeId) -> EvalResult<'a> {
        self.spend(1)?;
        let before = self.local(to)?;
        // A list of a constant is a constant.
        let is_constant = self.is_constant(element);
        let element = self.part(element)?;
        self.spend(if is_constant { 1 } else { 11 })?;
        let list = before?;
        let element = element?;
        // Empties the variable, so that `items` is the only reference to the list, which then grows without a copy.
        self.values.locals[to as usize] = Local::Empty;
        let Value::List(list) = list else { return Err(Error::no_such_overload().into()) };
        let mut items = match list {
            List::Owned(items) => items,
            other => Arc::new(other.to_vec()?),
        };
        Arc::make_mut(&mut items).push(element);
        Ok(Value::List(List::Owned(items)))
    }

    #[inline(never)]
    fn call(&mut self, call: &'a Call) -> EvalResult<'a> {
        let (mut few, mut many) = ([Value::Null, Value::Null, Value::Null], Vec::new());
        let arguments = match call.arguments.len() {
            count if count <= few.len() => &mut few[..count],
            count => {
                many.resize(count, Value::Null);
                &mut many[..]
            }
        };
        let failed = self.arguments(call, arguments)?;
        match call.cost.before(arguments) {
            Some(_) if call.cost == Cost::Join && failed.is_some() => self.spend(1)?,
            Some(cost) => self.spend(cost)?,
            None => {}
        }
        let result = match failed {
            Some(error) => Err(error),
            None if call.function == operators::MAP_INSERT => {
                self.let_go(call.arguments[0]);
                insert(arguments)
            }
            None => settled(self.apply(call, arguments))?,
        };
        if call.cost == Cost::Output {
            self.spend(Cost::after(result.as_ref().ok()))?;
        }
        Ok(result?)
    }

    /// Evaluates the arguments of a call, and tells which error is the call's.
    fn arguments(&mut self, call: &Call, into: &mut [Value<'a>]) -> Result<Option<Error>, Fault> {
        let sorted = match call.cost {
            Cost::Pairs { of } => Some(of),
            _ => None,
        };
        let mut failed = None;
        for (at, argument) in call.arguments.iter().enumerate() {
            match self.part(*argument)? {
                Ok(value) => into[at] = value,
                Err(error) => {
                    failed = failed.or(Some(error));
                    if sorted == Some(at) {
                        return Err(Fault::Unsortable);
                    }
                    if call.sequential && at + 1 < call.arguments.len() {
                        return Err(failed.unwrap_or_else(Error::no_such_overload).into());
                    }
                }
            }
        }
        Ok(failed)
    }

    /// Empties the variable of a loop, so that its map can grow where it is.
    fn let_go(&mut self, node: NodeId) {
        let program = self.values.program;
        if let Node::Attribute(Attribute { base: Base::Local(slot), .. }) = &program.nodes[node as usize] {
            self.values.locals[*slot as usize] = Local::Empty;
        }
    }

    fn apply(&mut self, call: &Call, arguments: &[Value<'a>]) -> EvalResult<'a> {
        if let Some(found) = call.quick.and_then(|quick| quick.call(arguments)) {
            return Ok(found);
        }
        match (call.function.as_str(), arguments) {
            ("find" | "findAll" | "matches", [Value::String(text), Value::String(pattern), ..]) => {
                self.found(call, text, pattern, arguments.get(2))
            }
            _ if call.pattern.is_some() => Err(Error::no_such_overload().into()),
            (function, arguments) => {
                Ok(table::call(function, arguments, call.overload.map(|overload| &overload.result))?)
            }
        }
    }

    fn found(
        &mut self,
        call: &Call,
        text: &Text<'a>,
        pattern: &str,
        most: Option<&Value<'a>>,
    ) -> EvalResult<'a> {
        let read;
        let pattern = match &call.pattern {
            Some(pattern) => pattern.compiled()?,
            None => {
                let of_match = call.function == "matches";
                let wrong =
                    |why: String| Error::new(if of_match { why } else { format!("Illegal regex: {why}") });
                let room = Room::of(self.budget.patterns);
                read = room.compile(pattern).map_err(|why| wrong(why.to_string()))?;
                self.budget.patterns = room.left();
                &read
            }
        };
        let most = match most {
            None => usize::MAX,
            Some(Value::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
            Some(_) => return Err(Error::no_such_overload().into()),
        };
        if call.function == "matches" {
            return self.matches(pattern, text).map(Value::Bool);
        }
        self.search(pattern, text)?;
        let part = |found: Range<usize>| &text[found];
        if call.function == "find" {
            return Ok(Value::string(pattern.find(text).map(part).unwrap_or_default()));
        }
        let mut parts = Vec::new();
        for found in pattern.find_iter(text).take(most) {
            // Each may have looked at the text to its end.
            self.check_interrupt()?;
            parts.push(part(found));
        }
        Ok(Value::texts(parts))
    }

    pub(super) fn matches(&mut self, pattern: &Regexp, text: &str) -> Result<bool, Fault> {
        self.search(pattern, text)?;
        Ok(pattern.is_match(text))
    }

    /// Pays for a search that takes longer than what upstream's cost of it stands for, seconds perhaps. No other is paid
    /// for, so that costs are upstream's.
    fn search(&mut self, pattern: &Regexp, text: &str) -> Result<(), Fault> {
        let steps = pattern.steps(text.len());
        if steps > LONG_SEARCH { self.spend(steps) } else { Ok(()) }
    }

    fn optional_or(&mut self, left: NodeId, right: NodeId, value: bool) -> EvalResult<'a> {
        match self.node(left)? {
            Value::Optional(Some(inner)) if value => Ok((*inner).clone()),
            Value::Optional(None) => self.node(right),
            some @ Value::Optional(_) => Ok(some),
            _ => Err(Error::no_such_overload().into()),
        }
    }

    #[inline(never)]
    fn list(&mut self, elements: &[NodeId], optional: &[bool]) -> EvalResult<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements.iter().zip(optional) {
            let value = match self.part(*element)? {
                Ok(value) => value,
                Err(error) => {
                    self.spend(10)?;
                    return Err(error.into());
                }
            };
            match (optional, value) {
                (false, value) => values.push(value),
                (true, Value::Optional(None)) => {}
                (true, Value::Optional(Some(inner))) => values.push((*inner).clone()),
                (true, other) => {
                    self.spend(10)?;
                    let shown = other.shown();
                    let why =
                        format!("cannot initialize optional list element from non-optional value {shown}");
                    return Err(Error::new(why).into());
                }
            }
        }
        self.spend(10)?;
        Ok(Value::owned(values))
    }

    #[inline(never)]
    fn map(&mut self, entries: &[(NodeId, NodeId, bool)]) -> EvalResult<'a> {
        let made = self.entries(entries);
        if matches!(made, Ok(_) | Err(Fault::Error(_))) {
            self.spend(30)?;
        }
        Ok(Value::Map(Map::Owned(Arc::new(made?))))
    }

    fn entries(&mut self, entries: &[(NodeId, NodeId, bool)]) -> Result<Entries<'a>, Fault> {
        let mut made = Entries::default();
        for (key, value, optional) in entries {
            let key = self.node(*key)?;
            let value = self.node(*value)?;
            let known = Key::of(&key).ok_or_else(|| {
                Error::new(format!("internal error: unsupported key type {}", key.type_name()))
            })?;
            match (optional, value) {
                (false, value) => made.put(known, value),
                (true, Value::Optional(None)) => made.remove(&known),
                (true, Value::Optional(Some(inner))) => made.put(known, (*inner).clone()),
                (true, other) => {
                    let (key, value) = (key.shown(), other.shown());
                    let why =
                        format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    return Err(Error::new(why).into());
                }
            }
        }
        Ok(made)
    }

    /// Objects that patches are made of.
    #[inline(never)]
    fn structure(&mut self, name: &SmolStr, fields: &'a [(SmolStr, NodeId, bool)]) -> EvalResult<'a> {
        let made = self.fields(fields);
        if matches!(made, Ok(_) | Err(Fault::Error(_))) {
            self.spend(40)?;
        }
        Ok(Value::structure(name.clone(), made?)?)
    }

    fn fields(&mut self, fields: &'a [(SmolStr, NodeId, bool)]) -> Result<Entries<'a>, Fault> {
        let mut made = Entries::default();
        for (name, value, optional) in fields {
            let key = Key::String(Text::Borrowed(name));
            match (optional, self.node(*value)?) {
                (false, value) => made.put(key, value),
                (true, Value::Optional(None)) => made.remove(&key),
                (true, Value::Optional(Some(inner))) => made.put(key, (*inner).clone()),
                (true, other) => {
                    let shown = other.shown();
                    let why =
                        format!("cannot initialize optional entry '{name}' from non-optional value {shown}");
                    return Err(Error::new(why).into());
                }
            }
        }
        Ok(made)
    }
}

/// A constant, of which nothing is copied.
fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(Text::Borrowed(text)),
        Value::List(List::Owned(items)) => Value::List(List::Constant(items)),
        Value::Map(Map::Owned(entries)) => Value::Map(Map::Constant(entries)),
        other => other.clone(),
    }
}

pub(super) fn is_member(item: &Value<'_>, of: &[Key<'static>]) -> bool {
    if let Value::String(text) = item {
        return of.iter().any(|key| matches!(key, Key::String(known) if **known == **text));
    }
    of.iter().any(|key| key.value().equals(item).unwrap_or(false))
}

fn apply<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Part<'a> {
    match operator {
        Operator::Add => arithmetic::add(left, right),
        Operator::Subtract => arithmetic::subtract(left, right),
        Operator::Multiply => arithmetic::multiply(left, right),
        Operator::Divide => arithmetic::divide(left, right),
        Operator::Modulo => arithmetic::modulo(left, right),
        _ => compare(operator, left, right).map(Value::Bool),
    }
}

/// The result of an operator that compares: equality, order, or `in`.
pub(super) fn compare(operator: Operator, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    let name = match operator {
        Operator::Equal => return left.equals(right),
        // What cannot be compared is not equal.
        Operator::NotEqual => return Ok(!left.equals(right).unwrap_or(false)),
        Operator::In => return contains(left, right),
        Operator::Less => "_<_",
        Operator::LessEqual => "_<=_",
        Operator::Greater => "_>_",
        _ => "_>=_",
    };
    if !left.is_ordered() {
        return Err(Error::new(format!("no such overload: {name}")));
    }
    let order = left.compare(right)?;
    Ok(match operator {
        Operator::Less => order.is_lt(),
        Operator::LessEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn contains(item: &Value<'_>, of: &Value<'_>) -> Result<bool, Error> {
    match of {
        Value::List(list) => lists::has(list, item),
        Value::Map(map) => Ok(map.find(item, 0)?.is_some()),
        _ => Err(Error::no_such_overload()),
    }
}

/// A map with one more entry, or with those of another.
fn insert<'a>(arguments: &mut [Value<'a>]) -> Part<'a> {
    let mut arguments = arguments.iter_mut().map(|argument| std::mem::replace(argument, Value::Null));
    let Some(Value::Map(map)) = arguments.next() else { return Err(Error::no_such_overload()) };
    let mut made = match map {
        Map::Owned(entries) => entries,
        other => Arc::new(pairs(&other)?.into_iter().fold(Entries::default(), |mut copy, (key, value)| {
            copy.put(key, value);
            copy
        })),
    };
    let added = match (arguments.next(), arguments.next()) {
        (Some(key), Some(value)) => vec![(Key::of(&key).ok_or_else(Error::no_such_overload)?, value)],
        (Some(Value::Map(other)), None) => pairs(&other)?,
        _ => return Err(Error::no_such_overload()),
    };
    let entries = Arc::make_mut(&mut made);
    for (key, value) in added {
        if entries.find(&key).is_some() {
            return Err(Error::new(format!("insert failed: key {} already exists", key.value().shown())));
        }
        entries.put(key, value);
    }
    Ok(Value::Map(Map::Owned(made)))
}

fn pairs<'a>(map: &Map<'a>) -> Result<Vec<(Key<'a>, Value<'a>)>, Error> {
    let mut pairs = Vec::new();
    for key in map.keys() {
        if let (Some(known), Some(value)) = (Key::of(&key), map.find(&key, 0)?) {
            pairs.push((known, value));
        }
    }
    Ok(pairs)
}
