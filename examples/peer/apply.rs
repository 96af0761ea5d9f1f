//! Answers questions about writes by managers.

use rowplane::codec::managed;
use rowplane::patch::apply::conflict;
use rowplane::patch::apply::fields::field_paths;
use rowplane::patch::apply::filter::Filter;
use rowplane::patch::apply::managers::{Acting, Identity, Managers, Operation};
use rowplane::patch::apply::nulls::without_nulls;
use rowplane::patch::apply::ownership::{self, Conflicts, Refusal, Versions};
use rowplane::patch::apply::schema::Schema;
use rowplane::tree::Value;
use serde::Deserialize;

use crate::question::{Answer, Object, kind_of};

/// Later than all times in questions.
const NOW: &str = "2100-01-01T00:00:00Z";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Apply {
    live: Object,
    config: Object,
    managers: Vec<Value>,
    manager: String,
    force: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    live: Object,
    new: Object,
    managers: Vec<Value>,
    manager: String,
}

/// A kind with one version, written through its main resource.
struct Kind {
    schema: Schema,
    api_version: String,
    filter: Filter,
}

impl Kind {
    fn of(object: &Object) -> Result<Self, String> {
        let kind = kind_of(object)?;
        let schema = Schema::of(&kind).ok_or("no schema")?;
        let filter = Filter::Exclude(field_paths(&[&["status"]]));
        Ok(Self { schema, api_version: kind.gvk.api_version().to_string(), filter })
    }

    fn acting(&self, manager: String, operation: Operation) -> Acting {
        let (api_version, subresource) = (self.api_version.clone(), String::new());
        let identity = Identity { name: manager, operation, api_version, subresource };
        Acting { identity, now: NOW.to_owned() }
    }
}

impl Versions for Kind {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        (api_version == self.api_version).then_some(&self.schema)
    }

    fn convert(&self, object: &Object, _: &str) -> Object {
        object.clone()
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }
}

impl Apply {
    pub fn answer(self) -> Result<Answer, String> {
        let kind = Kind::of(&self.live)?;
        let managers = Managers::decode(&self.managers).map_err(|why| why.to_string())?;
        let conflicts = if self.force { Conflicts::Force } else { Conflicts::Refuse };
        let acting = kind.acting(self.manager, Operation::Apply);
        let applied = ownership::apply(&kind, &self.live, &self.config, &managers, &acting, conflicts);
        let applied = applied.map_err(|refusal| match refusal {
            Refusal::Unfit(why) => why,
            Refusal::Conflicts(found) => conflict::message(&found).0,
        })?;
        let object = Some(without_nulls(&kind.schema, applied.object));
        Ok(Answer { object, managers: opened(applied.managers), ..Answer::default() })
    }
}

impl Update {
    pub fn answer(self) -> Result<Answer, String> {
        let kind = Kind::of(&self.live)?;
        let managers = Managers::decode(&self.managers).map_err(|why| why.to_string())?;
        let acting = kind.acting(self.manager, Operation::Update);
        let updated = ownership::update(&kind, &self.live, &self.new, &managers, &acting);
        Ok(Answer { managers: opened(updated.unwrap_or(managers)), ..Answer::default() })
    }
}

fn opened(managers: Managers) -> Option<Value> {
    let metadata = Object::from_iter([("managedFields".to_owned(), managers.encode()?)]);
    let mut object = Object::from_iter([("metadata".to_owned(), metadata.into())]);
    managed::open(&mut object);
    object["metadata"]["managedFields"].take().into()
}
