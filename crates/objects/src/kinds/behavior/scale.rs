//! Paths to the fields of an object that its subresource `scale` shows.

use crate::causes::Cause;
use crate::fields::ObjectMap;
use crate::gotext;
use crate::tree::{Map, Text, Value};

/// The paths that a version of a CustomResourceDefinition declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: ScalePath,
    pub status_replicas: ScalePath,
    pub selector: Option<ScalePath>,
}

/// A path of members: `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePath {
    /// The path as it is declared.
    pub declared: Text,
    members: Vec<Text>,
}

/// Why an object cannot be asked for a value, in the words of upstream's accessors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongType(String);

impl ScalePaths {
    /// Reads `subresources.scale`.
    pub fn read(scale: &Value) -> Self {
        let selector = scale["labelSelectorPath"].as_str();
        Self {
            spec_replicas: ScalePath::new(scale["specReplicasPath"].as_str().unwrap_or_default()),
            status_replicas: ScalePath::new(scale["statusReplicasPath"].as_str().unwrap_or_default()),
            selector: selector.filter(|path| !path.is_empty()).map(ScalePath::new),
        }
    }

    /// Errors of the replicas that an object's spec wants.
    pub fn spec_causes(&self, object: &ObjectMap) -> Vec<Cause> {
        self.spec_replicas.replicas_cause(object).into_iter().collect()
    }

    /// Errors of the replicas that an object's status reports, and of their selector.
    pub fn status_causes(&self, object: &ObjectMap) -> Vec<Cause> {
        let selector = self.selector.as_ref().and_then(|path| {
            let wrong = path.text(object).err()?;
            Some(Cause::invalid(path.declared.as_str(), "\"\"", &wrong.to_string()))
        });
        self.status_replicas.replicas_cause(object).into_iter().chain(selector).collect()
    }
}

impl ScalePath {
    fn new(declared: &str) -> Self {
        let members = declared.strip_prefix('.').unwrap_or(declared).split('.');
        Self { declared: declared.into(), members: members.map(Text::from).collect() }
    }

    pub fn members(&self) -> &[Text] {
        &self.members
    }

    /// The value at the path; `None` if it or a parent is missing.
    fn value<'o>(&self, object: &'o ObjectMap) -> Result<Option<&'o Value>, WrongType> {
        let mut parent = object;
        for (at, member) in self.members.iter().enumerate() {
            let Some(value) = parent.get(member) else { return Ok(None) };
            if at + 1 == self.members.len() {
                return Ok(Some(value));
            }
            parent = match value {
                Value::Object(below) => below,
                Value::Null => return Ok(None),
                other => {
                    return Err(wrong_type(&self.members[..=at + 1], other, "map[string]interface{}"));
                }
            };
        }
        Ok(None)
    }

    pub fn integer(&self, object: &ObjectMap) -> Result<Option<i64>, WrongType> {
        let Some(value) = self.value(object)? else { return Ok(None) };
        match value.as_i64() {
            Some(integer) => Ok(Some(integer)),
            None => Err(wrong_type(&self.members, value, "int64")),
        }
    }

    pub fn text<'o>(&self, object: &'o ObjectMap) -> Result<Option<&'o str>, WrongType> {
        let Some(value) = self.value(object)? else { return Ok(None) };
        match value.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(wrong_type(&self.members, value, "string")),
        }
    }

    /// Sets the value, and makes the parents that are missing.
    pub fn set(&self, object: &mut ObjectMap, value: Value) -> Result<(), WrongType> {
        let Some((last, parents)) = self.members.split_last() else { return Ok(()) };
        let mut parent = object;
        for (at, member) in parents.iter().enumerate() {
            let below = parent.entry(member.clone()).or_insert_with(|| Value::Object(Map::new()));
            parent = below.as_object_mut().ok_or_else(|| {
                let path = dotted(&self.members[..=at]);
                WrongType(format!("value cannot be set because {path} is not a map[string]interface{{}}"))
            })?;
        }
        parent.insert(last.clone(), value);
        Ok(())
    }

    fn replicas_cause(&self, object: &ObjectMap) -> Option<Cause> {
        const MOST: i64 = i32::MAX as i64;
        match self.integer(object) {
            Err(wrong) => Some(Cause::invalid(self.declared.as_str(), 0, &wrong.to_string())),
            Ok(Some(replicas)) if replicas < 0 => {
                Some(Cause::invalid(self.declared.as_str(), replicas, "should be a non-negative integer"))
            }
            Ok(Some(replicas)) if replicas > MOST => {
                let why = format!("should be less than or equal to {MOST}");
                Some(Cause::invalid(self.declared.as_str(), replicas, &why))
            }
            Ok(_) => None,
        }
    }
}

fn dotted(members: &[Text]) -> String {
    members.iter().flat_map(|member| [".", member.as_str()]).collect()
}

fn wrong_type(members: &[Text], value: &Value, expected: &str) -> WrongType {
    let (path, shown, found) = (dotted(members), gotext::display(value), gotext::go_type(value));
    WrongType(format!("{path} accessor error: {shown} is of the type {found}, expected {expected}"))
}
