//! Which definition has which names.

use futures_util::future::join_all;
use rowplane::api::hidden::HiddenResources;
use serde_json::{Value, json};

use super::{DEFINITIONS, change, condition, definition};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    custom_resources_25_a_kind_belongs_to_one_definition,
    custom_resources_26_short_names_belong_to_one_definition,
    custom_resources_9_names_of_an_established_definition,
    of_definitions_that_come_at_once_one_gets_a_name,
    names_that_are_not_kept_are_found_again,
}

fn path(plural: &str) -> String {
    format!("{DEFINITIONS}/{plural}.ex.io")
}

async fn wait_for(server: &TestServer, plural: &str, kind: &str, want: &str) -> Value {
    let mut events =
        server.watch(format!("{DEFINITIONS}?watch=1&fieldSelector=metadata.name={plural}.ex.io")).await;
    loop {
        let event = events.next().await.expect("it comes to that");
        if condition(&event["object"], kind) == want {
            return event["object"].clone();
        }
    }
}

async fn custom_resources_25_a_kind_belongs_to_one_definition(setup: Setup) {
    let server = setup.start().await;
    server.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201);
    let second = server.post(DEFINITIONS, &definition("gadgets", "Widget")).await.expect(201);
    // The kind of a list comes last.
    let refused = "False ListKindConflict \"WidgetList\" is already in use";
    assert_eq!(condition(&second, "NamesAccepted"), refused);
    assert_eq!(condition(&second, "Established"), "False NotAccepted not all names are accepted");
    assert_eq!(
        second["status"]["acceptedNames"],
        json!({"kind": "", "plural": "gadgets", "singular": "one-of-gadgets"})
    );
    assert_eq!(server.get("/apis/ex.io/v1/gadgets").await.status, 404);
    server.delete(path("widgets")).await.ok();
    let second = wait_for(
        &server,
        "gadgets",
        "Established",
        "True InitialNamesAccepted the initial names have been accepted",
    )
    .await;
    assert_eq!(second["status"]["acceptedNames"], second["spec"]["names"]);
    server.get("/apis/ex.io/v1/gadgets").await.ok();
}

async fn custom_resources_26_short_names_belong_to_one_definition(setup: Setup) {
    let server = setup.start().await;
    let mut first = definition("widgets", "Widget");
    first["spec"]["names"]["shortNames"] = json!(["a", "b"]);
    server.post(DEFINITIONS, &first).await.expect(201);
    let mut second = definition("gadgets", "Gadget");
    second["spec"]["names"]["shortNames"] = json!(["a", "b"]);
    let second = server.post(DEFINITIONS, &second).await.expect(201);
    assert_eq!(
        condition(&second, "NamesAccepted"),
        "False ShortNamesConflict [\"a\" is already in use, \"b\" is already in use]"
    );
    assert_eq!(second["status"]["acceptedNames"]["plural"], "gadgets");
    // Somebody who gives names up lets others have them.
    change(&server, path("widgets"), |definition| definition["spec"]["names"]["shortNames"] = json!(["c"]))
        .await
        .ok();
    wait_for(&server, "gadgets", "NamesAccepted", "True NoConflicts no conflicts found").await;
}

async fn custom_resources_9_names_of_an_established_definition(setup: Setup) {
    let server = setup.start().await;
    server.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201);
    for (place, value) in [("/spec/scope", "Namespaced"), ("/spec/names/kind", "Thing")] {
        let refused = change(&server, path("widgets"), |definition| {
            *definition.pointer_mut(place).expect(place) = value.into();
        });
        let refused = refused.await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(
            refused.failure()["message"].as_str().is_some_and(|text| text.contains("field is immutable"))
        );
    }
    let changed = change(&server, path("widgets"), |definition| {
        definition["spec"]["names"]["shortNames"] = json!(["w"]);
    });
    assert_eq!(changed.await.ok()["status"]["acceptedNames"]["shortNames"], json!(["w"]));
    let listed = server.get("/apis/ex.io/v1").await.ok();
    assert_eq!(listed["resources"][0]["shortNames"], json!(["w"]));
    // A conflict later on leaves it served by the names it has.
    let mut rival = definition("gadgets", "Gadget");
    rival["spec"]["names"]["shortNames"] = json!(["g"]);
    server.post(DEFINITIONS, &rival).await.expect(201);
    let changed = change(&server, path("widgets"), |definition| {
        definition["spec"]["names"]["shortNames"] = json!(["g"]);
    });
    let changed = changed.await.ok();
    assert_eq!(condition(&changed, "NamesAccepted"), "False ShortNamesConflict \"g\" is already in use");
    assert!(condition(&changed, "Established").starts_with("True"));
    assert_eq!(changed["status"]["acceptedNames"]["shortNames"], json!(["w"]));
    server.get("/apis/ex.io/v1/widgets").await.ok();
}

async fn of_definitions_that_come_at_once_one_gets_a_name(setup: Setup) {
    let one = setup.start().await;
    let other = if setup.is_sqlite() { None } else { Some(setup.start().await) };
    for round in 0..8 {
        let kind = format!("Kind{round}");
        let rivals = (0..6).map(|n| {
            let server = if n % 2 == 0 { &one } else { other.as_ref().unwrap_or(&one) };
            let mut rival = definition(&format!("r{round}x{n}"), &kind);
            rival["spec"]["names"]["singular"] = format!("single{round}").into();
            async move { server.post(DEFINITIONS, &rival).await.expect(201) }
        });
        let answers = join_all(rivals).await;
        let established =
            answers.iter().filter(|answer| condition(answer, "Established").starts_with("True"));
        assert_eq!(established.count(), 1, "{answers:#?}");
        for loser in answers.iter().filter(|answer| condition(answer, "Established").starts_with("False")) {
            assert_eq!(loser["status"]["acceptedNames"]["kind"], "");
            let text = condition(loser, "NamesAccepted");
            assert_eq!(text, format!("False ListKindConflict \"{kind}List\" is already in use"));
        }
    }
}

/// As by a restore of definitions without what keeps their names, or out of a store of an earlier release.
async fn names_that_are_not_kept_are_found_again(setup: Setup) {
    let server = setup.start().await;
    server.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201);
    let hidden = HiddenResources::register(&*server.backend).await.expect("ids");
    let id = hidden.definition_names.id();
    let kept = async || {
        let at = server.backend.clock().await.expect("a clock").revision;
        crate::support::object::names(&*server.backend, &rowplane::storage::Scan::all(id), at).await
    };
    let all = kept().await;
    assert_eq!(all, ["ex.io/kind/Widget", "ex.io/kind/WidgetList", "ex.io/one-of-widgets", "ex.io/widgets"]);
    for name in &all {
        let name = name.strip_prefix("ex.io/").expect("its group");
        let key = rowplane::storage::Key::new(id, "ex.io", name);
        let found = server.api.cache.any().get(id, "ex.io", name).expect("kept").revision();
        let expect = rowplane::storage::Expect::At(found);
        let lost = rowplane::storage::Mutation::new(key, expect, rowplane::storage::Change::Delete);
        server.api.store.write(lost).await.expect("deleted");
    }
    assert!(kept().await.is_empty());
    let start = server.revision().await;
    server.stop().await;
    let server = setup.start().await;
    let mut events = server.watch(format!("{DEFINITIONS}?watch=1&resourceVersion={start}")).await;
    // It is written once, with its names.
    events.expect_named("MODIFIED", "widgets.ex.io").await;
    let rival = server.post(DEFINITIONS, &definition("gadgets", "Widget")).await.expect(201);
    assert_eq!(condition(&rival, "NamesAccepted"), "False ListKindConflict \"WidgetList\" is already in use");
}
