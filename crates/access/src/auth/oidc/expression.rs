//! Expressions of CEL over the claims of a token.

use std::sync::Arc;

use crate::expression::value::{List, Map as MapValue, Value as CelValue};
use crate::expression::{Budget, Environment, Program, Refusal, Type, Variables, check, program};
use crate::tree::{Map, json};
use crate::user::User;

/// The highest cost of an expression: upstream's limit of one call.
const MOST: u64 = 1_000_000;
const USER: &str = "kubernetes.UserInfo";

/// An expression that can be evaluated. Copies share the plan.
#[derive(Clone, Debug)]
pub struct Expression {
    pub text: String,
    program: Arc<Program>,
}

/// The variable that an expression speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Claims,
    User,
}

impl Expression {
    /// `results` are the types that it may have.
    pub fn compile(text: &str, subject: Subject, results: &[Type], must: &str) -> Result<Self, String> {
        let environment = environment(subject);
        let checked = check(text, &environment).map_err(|refusal| match refusal {
            Refusal::Wrong(why) => why,
            Refusal::NoStack => "the expression is too deep to be compiled now".to_owned(),
        })?;
        if !results.contains(&checked.result) && !matches!(checked.result, Type::Dyn | Type::Any) {
            return Err(must.to_owned());
        }
        let program = program(&checked, &environment)?;
        Ok(Self { text: text.to_owned(), program: Arc::new(program) })
    }

    /// Whether it speaks of a claim, directly.
    pub fn names(&self, claim: &str) -> bool {
        let path = format!("claims.{claim}");
        self.text.match_indices(&path).any(|(at, _)| {
            let next = self.text[at + path.len()..].chars().next();
            !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    }

    /// Its one text; anything else is `must`.
    pub fn text_of(&self, claims: &Map, must: &str) -> Result<String, String> {
        let value = self.of_claims(claims)?;
        value.as_str().map(str::to_owned).ok_or_else(|| must.to_owned())
    }

    /// Its texts: one, several or none. Empty ones are left out.
    pub fn texts_of(&self, claims: &Map) -> Result<Vec<String>, String> {
        let must = || "expression must return a string or a list of strings".to_owned();
        let texts = match self.of_claims(claims)? {
            CelValue::Null => Vec::new(),
            CelValue::List(list) => self.texts(&list).ok_or_else(must)?,
            value => vec![value.as_str().ok_or_else(must)?.to_owned()],
        };
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
    }

    fn texts(&self, list: &List<'_>) -> Option<Vec<String>> {
        list.iter().map(|item| Some(item.ok()?.as_str()?.to_owned())).collect()
    }

    /// Fails with the message of the rule unless it is true.
    pub fn holds_for_claims(&self, claims: &Map, message: &str) -> Result<(), String> {
        self.holds(self.of_claims(claims)?, message)
    }

    pub fn holds_for_user(&self, user: &User, message: &str) -> Result<(), String> {
        let seen = json!({
            "username": user.name,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
        });
        let empty = Map::new();
        let map = seen.as_object().unwrap_or(&empty);
        self.holds(self.evaluate(&One { name: "user", map })?, message)
    }

    fn holds(&self, value: CelValue<'_>, message: &str) -> Result<(), String> {
        match value.as_bool() {
            Some(true) => Ok(()),
            Some(false) => Err(format!("validation expression '{}' failed: {message}", self.text)),
            None => Err("validation expression must return a boolean".to_owned()),
        }
    }

    fn of_claims<'a>(&'a self, claims: &'a Map) -> Result<CelValue<'a>, String> {
        self.evaluate(&One { name: "claims", map: claims })
    }

    fn evaluate<'a>(&'a self, variables: &One<'a>) -> Result<CelValue<'a>, String> {
        let evaluated = self.program.evaluate(variables, &mut Budget::of(MOST));
        evaluated
            .map_err(|fault| format!("expression '{}' resulted in error: {}", self.text, fault.message()))
    }
}

/// The only variable of an expression.
struct One<'a> {
    name: &'static str,
    map: &'a Map,
}

impl<'a> Variables<'a> for One<'a> {
    fn get(&self, name: &str) -> Option<Result<CelValue<'a>, crate::expression::value::Error>> {
        (name == self.name).then_some(Ok(CelValue::Map(MapValue::Dyn(self.map))))
    }
}

fn environment(subject: Subject) -> Environment {
    let environment = Environment::default();
    match subject {
        Subject::Claims => environment.with_variable("claims", Type::map(Type::String, Type::Any)),
        Subject::User => {
            let texts = || Type::list(Type::String);
            let fields = [
                ("username", Type::String),
                ("uid", Type::String),
                ("groups", texts()),
                ("extra", Type::map(Type::String, texts())),
            ];
            let fields = fields.map(|(name, is)| (name.to_owned(), is));
            environment.with_struct(USER, fields).with_variable("user", Type::Struct(USER.into()))
        }
    }
}
