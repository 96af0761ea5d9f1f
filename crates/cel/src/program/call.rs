//! Calls of functions.

use std::ops::Range;

use rowplane_values::regexp::{Regexp, Room};

use super::apply::insert;
use super::budget::Fault;
use super::evaluate::{EvalResult, Frame, Local, settled};
use super::{Attribute, Base, Call, Node, NodeId};
use crate::library::table::{self, Cost};
use crate::operators;
use crate::value::{Error, Text, Value};

/// Steps of a search, a tenth of a second at worst.
const LONG_SEARCH: u64 = 200_000;

impl<'a> Frame<'a, '_> {
    #[inline(never)]
    pub(super) fn call(&mut self, call: &'a Call) -> EvalResult<'a> {
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
}
