//! Scans with few matches: they examine a limited number of objects at a time, and then let other tasks run.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use futures_util::future::{join_all, poll_fn};
use futures_util::{StreamExt, TryStreamExt};
use rowplane::api::decode::Body;
use rowplane::api::options::list::{Collection, ListOptions};
use rowplane::api::options::query::Query;
use rowplane::api::options::watch::{WatchOptions, WatchPath};
use rowplane::api::request::Request;
use rowplane::api::verbs::watch::WatchEvent;
use rowplane::api::{Api, Target};
use rowplane::schema::names::{GroupVersion, Gvr};
use rowplane::schema::resource::Verb;
use rowplane::tree::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::database::Database;
use crate::support::verbs::api_on;

/// Each event must be decoded, which counts as more than twenty of a turn's 4096 steps.
const EVENTS: usize = 600;
const LEAST_TURNS: usize = 3;

async fn create(api: &Api, plural: &str, namespace: &str, object: Value) {
    let resource = api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural);
    let Value::Object(object) = object else { unreachable!("an object") };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    api.create(&request, Body::Object(&object)).await.expect("created");
}

async fn event(api: &Api, name: String, reason: &str) {
    let object = json!({"metadata": {"name": name}, "reason": reason,
        "involvedObject": {"kind": "Pod", "namespace": "t", "name": "p"}});
    create(api, "events", "t", object).await;
}

/// The result of a future, and the number of its turns. Nothing here waits for anything else.
async fn with_turns<F: Future>(work: F) -> (F::Output, usize) {
    let (mut work, mut turns) = (pin!(work), 1);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(found) => Poll::Ready((found, turns)),
        Poll::Pending => {
            turns += 1;
            Poll::Pending
        }
    })
    .await
}

#[tokio::test]
async fn scans_that_find_little_let_others_go_first() {
    let database = Database::sqlite();
    let api = api_on(&database).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    join_all((0..EVENTS).map(|n| event(&api, format!("e{n:04}"), "common"))).await;
    event(&api, "z".to_owned(), "rare").await;
    let events = api.resources.get(&Gvr::fixed("v1", "events")).expect("events");
    let (group_resource, keys) = (events.group_resource(), api.token_keys.load());
    let collection = || Collection {
        resource: &group_resource,
        namespaced: true,
        namespace: Some("t"),
        name: None,
        fields: &events.behavior.fields,
        door: None,
        ask: None,
    };
    // A page, a whole state, and a whole state from the database.
    let exactly = format!("resourceVersion={}&resourceVersionMatch=Exact", api.cache.revision());
    for at in ["limit=5", "resourceVersion=0", &exactly] {
        for selector in ["fieldSelector=reason%3Drare", "fieldSelector=reason%3Drare&labelSelector=!a"] {
            let query = Query::parse(&format!("{selector}&{at}"));
            let options = ListOptions::parse(&query, collection(), &keys).expect("options");
            let list = async {
                let list = api.list(events, Some("t"), options).await?;
                list.items.try_concat().await
            };
            let (found, turns) = with_turns(list).await;
            let names: Vec<String> =
                found.expect("a list").iter().map(|object| object.name().to_owned()).collect();
            assert_eq!(names, ["z"], "{query:?}");
            assert!(turns >= LEAST_TURNS, "{at}: {turns} turns");
        }
    }
    let query = Query::parse("watch=true&resourceVersion=0&fieldSelector=reason%3Drare");
    let options = WatchOptions::parse(&query, collection(), WatchPath::Collection).expect("options");
    let mut watch = api.watch(events, Some("t"), options, CancellationToken::new());
    let (told, turns) = with_turns(watch.next()).await;
    let told = told.expect("events");
    assert!(matches!(&told[..], [WatchEvent::State(object)] if object.name() == "z"), "{told:?}");
    assert!(turns >= LEAST_TURNS, "{turns} turns");
}

/// Without a search there is only one turn: a page is taken at once, and nothing behind it is counted.
#[tokio::test]
async fn pages_of_everything_take_one_turn() {
    let database = Database::sqlite();
    let api = api_on(&database).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    join_all((0..300).map(|n| event(&api, format!("e{n:04}"), "common"))).await;
    let events = api.resources.get(&Gvr::fixed("v1", "events")).expect("events");
    let (group_resource, keys) = (events.group_resource(), api.token_keys.load());
    for (namespace, limit, remaining) in [(None, 100, 200), (Some("t"), 100, 200), (None, 299, 1)] {
        let collection = Collection {
            resource: &group_resource,
            namespaced: true,
            namespace,
            name: None,
            fields: &events.behavior.fields,
            door: None,
            ask: None,
        };
        let query = Query::parse(&format!("limit={limit}"));
        let options = ListOptions::parse(&query, collection, &keys).expect("options");
        let (list, turns) = with_turns(api.list(events, namespace, options)).await;
        let mut list = list.expect("a list");
        assert_eq!((list.remaining, turns), (Some(remaining), 1));
        assert_eq!(list.items.next().await.expect("items").expect("items").len(), limit);
    }
}
