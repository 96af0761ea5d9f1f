//! Pages and continue tokens.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, names, rv, token};

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start \
    a new list without the continue parameter, or use the continue token in this response to retrieve the remainder \
    of the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned and now may show up in the list.";

on_every_store! {
    list_watch_27_pages_of_a_snapshot,
    list_watch_28_writes_between_pages_are_not_seen,
    list_watch_29_pages_over_namespaces,
    list_watch_30_pages_with_selectors,
    list_watch_31_the_rest_at_once,
    list_watch_32_a_revision_beside_a_token,
    list_watch_33_garbage_tokens,
    list_watch_34_foreign_and_forged_tokens,
    list_watch_35_a_token_after_a_restart,
    list_watch_36_37_an_expired_token,
    list_watch_95_compaction_in_the_middle,
}

async fn five(server: &TestServer) {
    for name in ["a", "b", "c", "d", "e"] {
        server.create(name, json!({"n": "1"})).await;
    }
}

/// A page and the query of the next one.
async fn page(client: &Client, path: &str, query: &str) -> Value {
    client.get(format!("{path}?{query}")).await.ok()
}

async fn list_watch_27_pages_of_a_snapshot(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let first = page(&server, CONFIGMAPS, "limit=2").await;
    let second = page(&server, CONFIGMAPS, &format!("limit=2&continue={}", token(&first))).await;
    let third = page(&server, CONFIGMAPS, &format!("limit=2&continue={}", token(&second))).await;
    assert_eq!([&first, &second, &third].map(names), [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
    let remaining = |list: &Value| list["metadata"].get("remainingItemCount").cloned();
    assert_eq!([&first, &second, &third].map(remaining), [Some(json!(3)), Some(json!(1)), None]);
    assert_eq!(third["metadata"].get("continue"), None);
    assert!(rv(&first) == rv(&second) && rv(&second) == rv(&third));
    // A last page that is full is the last page.
    let four = page(&server, CONFIGMAPS, "limit=5").await;
    assert_eq!(four["metadata"], json!({"resourceVersion": rv(&first).to_string()}));
}

async fn list_watch_28_writes_between_pages_are_not_seen(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let snapshot = server.get(CONFIGMAPS).await.ok();
    let mut pages = vec![page(&server, CONFIGMAPS, "limit=2").await];
    for round in 0.. {
        let Some(next) = pages.last().and_then(|page| page["metadata"]["continue"].as_str()) else { break };
        server.create(&format!("c{round}"), json!({})).await;
        server.set("d", json!({"n": round.to_string()})).await;
        server.remove(["c", "e"][round % 2]).await;
        pages.push(page(&server, CONFIGMAPS, &format!("limit=2&continue={next}")).await);
    }
    assert_eq!(pages.len(), 3);
    let items: Vec<Value> =
        pages.iter().flat_map(|page| page["items"].as_array().expect("items").clone()).collect();
    assert_eq!(Value::Array(items), snapshot["items"]);
    assert!(pages.iter().all(|page| rv(page) == rv(&snapshot)));
}

async fn list_watch_29_pages_over_namespaces(setup: Setup) {
    let server = setup.start().await;
    for namespace in ["a", "a-b", "b"] {
        server.namespace(namespace).await;
        for name in ["x", "y", "z"] {
            let object = json!({"metadata": {"name": name}});
            server.post(format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await.expect(201);
        }
    }
    let keys = |list: &Value| -> Vec<String> {
        let key = |item: &Value| format!("{}/{}", item["metadata"]["namespace"], item["metadata"]["name"]);
        list["items"].as_array().expect("items").iter().map(key).collect()
    };
    let whole = keys(&server.get(ALL_CONFIGMAPS).await.ok());
    assert_eq!(whole.len(), 9);
    for limit in 1..=4 {
        let mut list = page(&server, ALL_CONFIGMAPS, &format!("limit={limit}")).await;
        let mut found = keys(&list);
        while let Some(next) = list["metadata"]["continue"].as_str() {
            list = page(&server, ALL_CONFIGMAPS, &format!("limit={limit}&continue={next}")).await;
            found.extend(keys(&list));
        }
        assert_eq!(found, whole, "pages of {limit}");
    }
}

async fn list_watch_30_pages_with_selectors(setup: Setup) {
    let server = setup.start().await;
    for n in 0..1000 {
        let labels = if n == 750 { json!({"rare": "yes"}) } else { json!({"rare": "no"}) };
        let object = json!({"metadata": {"name": format!("n{n:04}"), "labels": labels}});
        server.post(CONFIGMAPS, &object).await.expect(201);
    }
    let list = page(&server, CONFIGMAPS, "limit=2&labelSelector=rare%3Dno").await;
    assert_eq!(names(&list), ["n0000", "n0001"]);
    assert!(list["metadata"]["continue"].is_string());
    assert_eq!(list["metadata"].get("remainingItemCount"), None);
    let next = format!("limit=2&labelSelector=rare%3Dno&continue={}", token(&list));
    assert_eq!(names(&page(&server, CONFIGMAPS, &next).await), ["n0002", "n0003"]);
    let mut list = page(&server, CONFIGMAPS, "limit=1&labelSelector=rare%3Dyes").await;
    assert_eq!(names(&list), ["n0750"]);
    while let Some(next) = list["metadata"]["continue"].as_str() {
        list = page(&server, CONFIGMAPS, &format!("limit=1&labelSelector=rare%3Dyes&continue={next}")).await;
        assert_eq!(list["items"], json!([]));
    }
}

async fn list_watch_31_the_rest_at_once(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let first = page(&server, CONFIGMAPS, "limit=2").await;
    let rest = page(&server, CONFIGMAPS, &format!("continue={}", token(&first))).await;
    assert_eq!(names(&rest), ["c", "d", "e"]);
    assert_eq!(rest["metadata"], json!({"resourceVersion": rv(&first).to_string()}));
}

async fn list_watch_32_a_revision_beside_a_token(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let first = page(&server, CONFIGMAPS, "limit=2").await;
    let next = token(&first);
    let zero = page(&server, CONFIGMAPS, &format!("continue={next}&resourceVersion=0")).await;
    assert_eq!((names(&zero), rv(&zero)), (vec!["c".into(), "d".into(), "e".into()], rv(&first)));
    for revision in [rv(&first).to_string(), "1".to_owned(), "abc".to_owned()] {
        let answer = server.get(format!("{CONFIGMAPS}?continue={next}&resourceVersion={revision}")).await;
        answer.bad_request("specifying resource version is not allowed when using continue");
    }
    // A bad token is told first.
    let answer = server.get(format!("{CONFIGMAPS}?continue=x&resourceVersion=abc")).await.failure();
    assert!(
        answer["message"].as_str().is_some_and(|text| text.starts_with("invalid continue token: ")),
        "{answer}"
    );
}

/// 400 with the text that every token that is not ours gets.
async fn refused(server: &Client, path: &str, token: &str) {
    let failure = server.get(format!("{path}?continue={token}")).await.failure();
    assert_eq!((&failure["code"], &failure["reason"]), (&json!(400), &json!("BadRequest")), "{token}");
    let message = failure["message"].as_str().expect("a message");
    assert!(message.starts_with("invalid continue token: continue key is not valid"), "{message}");
}

async fn list_watch_33_garbage_tokens(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let upstream = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIzLCJzdGFydCI6InQvYVx1MDAwMCJ9";
    for garbage in ["garbage", "%00", "e30", upstream, "%F0%9F%92%A9", &"A".repeat(5000)] {
        refused(&server, CONFIGMAPS, garbage).await;
    }
}

async fn list_watch_34_foreign_and_forged_tokens(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    server.namespace("u").await;
    let next = token(&page(&server, CONFIGMAPS, "limit=2").await);
    for path in ["/api/v1/namespaces/u/configmaps", "/api/v1/namespaces/t/secrets", ALL_CONFIGMAPS] {
        refused(&server, path, &next).await;
    }
    for at in 0..next.len() {
        let mut forged = next.clone().into_bytes();
        // Another character of the alphabet, whose six bits differ.
        forged[at] = if forged[at] == b'A' { b'f' } else { b'A' };
        let forged = std::str::from_utf8(&forged).expect("ASCII");
        // Bytes 1 to 4 name the key. Whether one that is not there was there once, nobody can say: as a token, it has expired.
        if (2..=6).contains(&at) {
            let failure = server.get(format!("{CONFIGMAPS}?continue={forged}")).await.failure();
            assert_eq!(failure["code"], 410, "{forged}: {failure}");
        } else {
            refused(&server, CONFIGMAPS, forged).await;
        }
    }
    refused(&server, CONFIGMAPS, &next[..next.len() - 4]).await;
    assert_eq!(names(&page(&server, CONFIGMAPS, &format!("continue={next}")).await), ["c", "d", "e"]);
}

async fn list_watch_35_a_token_after_a_restart(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let next = token(&page(&server, CONFIGMAPS, "limit=2").await);
    server.set("c", json!({"n": "2"})).await;
    let before = page(&server, CONFIGMAPS, &format!("limit=2&continue={next}")).await;
    server.stop().await;
    let server = setup.start().await;
    let after = page(&server, CONFIGMAPS, &format!("limit=2&continue={next}")).await;
    assert_eq!(
        (&after["items"], rv(&after), &after["metadata"]["remainingItemCount"]),
        (&before["items"], rv(&before), &json!(1))
    );
    if !setup.is_sqlite() {
        let replica = setup.start().await;
        let there = page(&replica, CONFIGMAPS, &format!("limit=2&continue={next}")).await;
        assert_eq!((&there["items"], rv(&there)), (&before["items"], rv(&before)));
        replica.stop().await;
    }
}

async fn list_watch_36_37_an_expired_token(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let first = page(&server, CONFIGMAPS, "limit=2").await;
    let expired = token(&first);
    server.create("aa", json!({})).await;
    server.set("c", json!({"n": "2"})).await;
    server.create("cc", json!({})).await;
    server.compact(server.revision().await).await;
    let mut failure = server.get(format!("{CONFIGMAPS}?limit=2&continue={expired}")).await.failure();
    let fresh = token(&failure);
    assert!(!fresh.is_empty() && fresh != expired);
    failure["metadata"] = json!({});
    assert_eq!(failure, crate::support::client::failure(410, "Expired", TOO_OLD, Value::Null));
    // 37: the rest of the newest data, after the same key.
    let second = page(&server, CONFIGMAPS, &format!("limit=2&continue={fresh}")).await;
    assert_eq!(names(&second), ["c", "cc"]);
    assert_eq!(second["items"][0]["data"]["n"], "2");
    assert!(rv(&second) > rv(&first));
    server.create("f", json!({})).await;
    let third = page(&server, CONFIGMAPS, &format!("continue={}", token(&second))).await;
    assert_eq!((names(&third), rv(&third)), (vec!["d".into(), "e".into()], rv(&second)));
}

async fn list_watch_95_compaction_in_the_middle(setup: Setup) {
    let server = setup.start().await;
    five(&server).await;
    let first = page(&server, CONFIGMAPS, "limit=2").await;
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&first))).await;
    server.set("a", json!({"n": "2"})).await;
    watch.expect_named("MODIFIED", "a").await;
    server.compact(server.revision().await).await;
    let expired = server.get(format!("{CONFIGMAPS}?continue={}", token(&first))).await;
    assert_eq!(expired.status, 410);
    assert!(!token(&expired.failure()).is_empty());
    server.set("b", json!({"n": "2"})).await;
    watch.expect_named("MODIFIED", "b").await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()).len(), 5);
}
