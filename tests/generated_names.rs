//! Item 73 of the checklist in `docs/spec/list-watch.md`: names from `generateName` that are taken. A test cannot take
//! the 14 million names of a prefix, so here names are numbers. The form of the refusal over HTTPS is among the tests
//! of writes.

#[macro_use]
mod support;

use std::collections::HashMap;
use std::sync::Mutex;

use rowplane::api::decode::Body;
use rowplane::api::error::{Error, Exists};
use rowplane::api::request::Request;
use rowplane::api::{Answer, Api, Target};
use rowplane::schema::names::GroupVersion;
use rowplane::schema::resource::Verb;
use rowplane::tree::{Value, json};

use support::verbs::api_that_names;

on_both_databases! {
    list_watch_73_taken_names_are_tried_eight_times,
}

/// How many names were generated for each prefix.
static NAMES: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);

fn next_name(prefix: &str) -> String {
    let mut names = NAMES.lock().expect("names");
    let given = names.get_or_insert_default().entry(prefix.to_owned()).or_default();
    *given += 1;
    format!("{prefix}{given}")
}

async fn list_watch_73_taken_names_are_tried_eight_times(setup: support::server::Setup) {
    let api = api_that_names(&setup.database, next_name).await;
    create(&api, "namespaces", json!({"name": "t"})).await.expect("a namespace");
    for taken in [7, 8] {
        // Both databases share the counters.
        let prefix = format!("{}-{taken}-", if setup.is_sqlite() { "sqlite" } else { "postgres" });
        for n in 1..=taken {
            create(&api, "configmaps", json!({"name": format!("{prefix}{n}")})).await.expect("a name");
        }
        let created = create(&api, "configmaps", json!({"generateName": prefix})).await;
        match (taken, created) {
            (7, Ok(Answer::Stored(object))) => assert_eq!(object.name(), format!("{prefix}8")),
            (8, Err(Error::AlreadyExists { name, cause: Exists::Generated, .. })) => {
                assert_eq!(name, format!("{prefix}8"));
            }
            (_, Err(error)) => panic!("{error:?}"),
            (_, Ok(_)) => panic!("a ninth name was tried"),
        }
        assert_eq!(next_name(&prefix), format!("{prefix}9"));
    }
}

async fn create(api: &Api, plural: &str, metadata: Value) -> Result<Answer, Error> {
    let resource = api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural);
    let namespace = if resource.definition.namespaced() { "t" } else { "" };
    let Value::Object(object) = json!({"metadata": metadata}) else { unreachable!("an object") };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    api.create(&request, Body::Object(&object)).await
}
