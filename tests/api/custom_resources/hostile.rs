//! Definitions and objects that ask for more than anybody should get: each is refused with a clear Status or served, and
//! everything else goes on. None of these cases has a limit of time: without their bounds they do not end, or take all
//! memory. What is counted is in `crates/cel/tests/hostile.rs` and in `crates/objects/tests/modules/schema_structural.rs`.

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};

on_every_store! {
    schemas_that_are_too_deep,
    ten_thousand_properties,
    a_schema_of_three_mebibytes,
    patterns_that_explode,
    rules_without_end,
    defaults_that_do_not_fit,
    columns_that_lead_nowhere,
    objects_of_wrong_shapes,
}

const JSON: &str = "application/json";

fn schema(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

fn of_x(x: Value) -> Value {
    let mut definition = widgets();
    schema(&mut definition)["properties"]["spec"]["properties"]["x"] = x;
    definition
}

fn refusal(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.text().chars().take(500).collect::<String>());
    assert!(answer.body.len() < 1 << 20, "{} bytes", answer.body.len());
    answer.failure()["message"].as_str().expect("a message").to_owned()
}

/// Whether others are served as ever.
async fn is_well(server: &TestServer) {
    server.post(CONFIGMAPS, &config_map("well", json!({"k": "v"}))).await.expect(201);
    server.delete(format!("{CONFIGMAPS}/well")).await.ok();
}

async fn post(server: &TestServer, path: &str, body: String) -> Answer {
    server.request(Method::POST, path).body(JSON, body).await
}

async fn schemas_that_are_too_deep(setup: Setup) {
    let server = setup.start().await;
    let nested = |levels: usize, before: &str, within: &str, after: &str| {
        let (before, after) = (before.repeat(levels), after.repeat(levels));
        let marked = of_x(json!("SCHEMA")).to_string();
        marked.replace("\"SCHEMA\"", &format!("{before}{within}{after}"))
    };
    let (list, text) = (r#"{"type":"array","items":"#, r#"{"type":"string"}"#);
    for levels in [200, 5_000, 100_000] {
        let answer = post(&server, DEFINITIONS, nested(levels, list, text, "}")).await;
        assert!((400..500).contains(&answer.status), "{levels}: {answer:?}");
        refusal(&answer, answer.status);
    }
    let any_of = nested(5_000, r#"{"anyOf":["#, "{}", "]}");
    assert!((400..500).contains(&post(&server, DEFINITIONS, any_of).await.status));
    let around = of_x(json!({"$ref": "#/definitions/x"}));
    let told = refusal(&server.post(DEFINITIONS, &around).await, 422);
    assert!(told.contains("$ref is not supported"), "{told}");
    // What is deep, but not too deep, is served.
    let deep = nested(20, list, text, "}");
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "d"}})).await.expect(201);
    post(&server, DEFINITIONS, deep).await.expect(201);
    let value = (0..20).fold(json!("x"), |value, _| json!([value]));
    server.post(WIDGETS, &widget("w", json!({"x": value}))).await.expect(201);
    is_well(&server).await;
}

async fn ten_thousand_properties(setup: Setup) {
    let server = setup.start().await;
    let mut definition = widgets();
    let properties =
        schema(&mut definition)["properties"]["spec"]["properties"].as_object_mut().expect("properties");
    for number in 0..10_000 {
        properties
            .insert(format!("p{number}"), json!({"type": "integer", "maximum": number, "default": number}));
    }
    let rule = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]});
    for number in 0..1_000 {
        properties.insert(format!("r{number}"), rule.clone());
    }
    with(&server, &definition).await;
    let created = server.post(WIDGETS, &widget("w", json!({}))).await.expect(201);
    assert_eq!(created["spec"].as_object().map(serde_json::Map::len), Some(10_000));
    let rules = (0..1_000).map(|number| (format!("r{number}"), Value::from(-1))).collect();
    let broken = server.post(WIDGETS, &widget("x", Value::Object(rules))).await;
    let causes = broken.failure()["details"]["causes"].as_array().map_or(0, Vec::len);
    assert!((256..=257).contains(&causes), "{causes}");
    let high = (0..10_000).map(|number| (format!("p{number}"), Value::from(number + 1))).collect();
    let wrong = server.post(WIDGETS, &widget("y", Value::Object(high))).await;
    assert!(wrong.status == 422 && wrong.body.len() < 4 << 20, "{} {}", wrong.status, wrong.body.len());
    is_well(&server).await;
}

async fn a_schema_of_three_mebibytes(setup: Setup) {
    let server = setup.start().await;
    let of = |bytes: usize| of_x(json!({"type": "string", "description": "d".repeat(bytes)}));
    let told = refusal(&server.post(DEFINITIONS, &of(3 << 20)).await, 413);
    assert_eq!(told, "Request entity too large: limit is 3145728");
    let large = of((3 << 20) - 10_000);
    with(&server, &large).await;
    server.post(WIDGETS, &widget("w", json!({"x": "y"}))).await.expect(201);
    let document = server.get("/openapi/v3/apis/ex.io/v1").await;
    assert!(document.status == 200 && document.body.len() > 3 << 20);
    server.delete(WIDGETS_DEFINITION).await.ok();
    is_well(&server).await;
}

async fn patterns_that_explode(setup: Setup) {
    let server = setup.start().await;
    let pattern = |pattern: &str| of_x(json!({"type": "string", "pattern": pattern}));
    for wrong in [r"(a{1000}){1000}", r"a{1001}", r"(?=a)", r"(a)\1", &"(".repeat(50_000)] {
        let told = refusal(&server.post(DEFINITIONS, &pattern(wrong)).await, 422);
        assert!(told.contains("must be a valid regular expression, but isn't"), "{told:.300}");
    }
    with(&server, &pattern("^(x+x+)+y$")).await;
    // A search that goes back takes this for ever.
    let long = widget("w", json!({"x": "x".repeat(10_000)}));
    let told = refusal(&server.post(WIDGETS, &long).await, 422);
    assert!(told.ends_with("spec.x in body should match '^(x+x+)+y$'"), "{told:.300}");
    change(&server, WIDGETS_DEFINITION, |definition| {
        let x = json!({"type": "string", "maxLength": 200_000,
            "x-kubernetes-validations": [{"rule": "self.matches('^(x+x+)+y$')"}]});
        schema(definition)["properties"]["spec"]["properties"]["x"] = x;
    })
    .await
    .ok();
    let told = refusal(&server.post(WIDGETS, &long).await, 422);
    assert!(told.ends_with("failed rule: self.matches('^(x+x+)+y$')"), "{told:.300}");
    change(&server, WIDGETS_DEFINITION, |definition| {
        let x = json!({"type": "string", "pattern": "(a|b)*a(a|b){900}$"});
        schema(definition)["properties"]["spec"]["properties"]["x"] = x;
    })
    .await
    .ok();
    // Nothing of it can be remembered: nearly three thousand million looks at it, which are not begun.
    let text: String =
        (0..3_u32 << 20).map(|n| if n.wrapping_mul(2_654_435_761) >> 31 == 0 { 'a' } else { 'b' }).collect();
    let huge = widget("w", json!({"x": &text[..(3 << 20) - 1000]}));
    let told = refusal(&server.post(WIDGETS, &huge).await, 422);
    assert!(told.ends_with("not all were made"), "{told:.300}");
    // What is short enough to be looked at.
    let short = widget("w", json!({"x": &text[..50_000]}));
    server.post(WIDGETS, &short).await;
    is_well(&server).await;
}

async fn rules_without_end(setup: Setup) {
    let server = setup.start().await;
    let rules = |rules: Vec<Value>| {
        of_x(json!({"type": "array", "maxItems": 1000, "items": {"type": "integer"},
            "x-kubernetes-validations": rules}))
    };
    let deep = format!("{}true{}", "(".repeat(10_000), ")".repeat(10_000));
    let loops = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))";
    let long = format!("'{}' != ''", "x".repeat(200_000));
    for (rule, why) in [
        (deep.as_str(), "expression recursion limit exceeded: 250"),
        (loops, "estimated rule cost exceeds budget by factor of more than 100x"),
        // Its message is cut before it comes to what is wrong.
        (long.as_str(), "x-kubernetes-validations[0].rule: Invalid value: "),
    ] {
        let answer = server.post(DEFINITIONS, &rules(vec![json!({"rule": rule})])).await;
        let told = refusal(&answer, 422);
        assert!(told.contains(why), "{why}: {:.300}", &told[told.len().saturating_sub(300)..]);
    }
    // Each is cheap enough, and so are all together; they end with the budget of an object.
    let dear = json!({"rule": "self.all(a, self.all(b, a + b >= 0)) || true"});
    with(&server, &rules(vec![dear; 10])).await;
    let numbers = vec![1; 1000];
    let told = refusal(&server.post(WIDGETS, &widget("w", json!({"x": numbers}))).await, 422);
    assert!(told.contains("no further validation rules will be run"), "{told}");
    server.post(WIDGETS, &widget("small", json!({"x": [1, 2]}))).await.expect(201);
    is_well(&server).await;
}

async fn defaults_that_do_not_fit(setup: Setup) {
    let server = setup.start().await;
    for (x, why) in [
        (json!({"type": "integer", "default": {"a": 1}}), "must be of type integer: \"object\""),
        (
            json!({"type": "array", "items": {"type": "string"}, "default": [1, null]}),
            "must be of type string",
        ),
        (
            json!({"type": "string", "maxLength": 1, "default": "long"}),
            "Too long: may not be more than 1 byte",
        ),
        (json!({"type": "string", "enum": ["a"], "default": "b"}), "Unsupported value: \"b\""),
    ] {
        let told = refusal(&server.post(DEFINITIONS, &of_x(x)).await, 422);
        assert!(told.contains(why) && told.contains("properties[x].default"), "{told}");
    }
    // A small body whose items are each given a large default.
    let item =
        json!({"type": "object", "properties": {"a": {"type": "string", "default": "x".repeat(10_000)}}});
    with(&server, &of_x(json!({"type": "array", "items": item}))).await;
    let few = widget("few", json!({"x": vec![json!({}); 10]}));
    assert_eq!(
        server.post(WIDGETS, &few).await.expect(201)["spec"]["x"][9]["a"].as_str().map(str::len),
        Some(10_000)
    );
    let bomb = widget("bomb", json!({"x": vec![json!({}); 100_000]}));
    let told = refusal(&server.post(WIDGETS, &bomb).await, 413);
    assert_eq!(told, "Request entity too large: the defaults of the object take more than 67108864 bytes");
    let apply = server.request(Method::PATCH, format!("{WIDGETS}/bomb?fieldManager=m"));
    let applied = apply.body("application/apply-patch+yaml", bomb.to_string()).await;
    refusal(&applied, 413);
    is_well(&server).await;
}

async fn columns_that_lead_nowhere(setup: Setup) {
    let server = setup.start().await;
    let paths = [
        ".",
        ".spec[",
        ".spec[*",
        ".spec..",
        ".spec.x[?(@.a==",
        ".spec.x[0:1:0]",
        ".spec.x[-1]",
        ".spec.x[99999999999999999999]",
        ".spec['a",
        "..*..*..*",
        ".spec.x[?(@..a==1)]",
        ".{end}",
        ".spec.x[*]..a[*]..b",
    ];
    let mut definition = of_x(
        json!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
    );
    let many: Vec<Value> = (0..500).map(|number| json!({"a": number, "b": {"a": [number]}})).collect();
    let mut bare = definition.clone();
    bare["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
    with(&server, &bare).await;
    server.post(WIDGETS, &widget("w", json!({"x": many}))).await.expect(201);
    for path in paths {
        let column = json!([{"name": "Broken", "type": "string", "jsonPath": path}]);
        definition["spec"]["versions"][0]["additionalPrinterColumns"] = column;
        let declared = change(&server, WIDGETS_DEFINITION, |stored| {
            stored["spec"]["versions"] = definition["spec"]["versions"].clone();
        });
        assert_eq!(declared.await.status, 200, "{path}");
        let table = server.get(WIDGETS).accept("application/json;as=Table;g=meta.k8s.io;v=v1").await.ok();
        assert_eq!(table["rows"][0]["cells"][0], "w", "{path}");
        assert!(table["rows"][0]["cells"].as_array().is_some_and(|cells| cells.len() <= 2), "{path}");
    }
    is_well(&server).await;
}

async fn objects_of_wrong_shapes(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("w", json!({}))).await.expect(201);
    let of = |spec: &str| {
        format!(r#"{{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{{"name":"x"}},"spec":{spec}}}"#)
    };
    let (open, close) = (r#"{"free":{"a":"#, "}}");
    let deep = of(&format!("{}1{}", open.repeat(50_000), close.repeat(50_000)));
    for body in [
        deep,
        of("[]"),
        of("7"),
        of("null1"),
        of(r#"{"replicas":1e999}"#),
        of(r#"{"ports":{}}"#),
        of(r#"{"tags":[[],{}]}"#),
        of(r#"{"replicas":"\ud800"}"#),
        "[".repeat(1_000_000),
        of(&format!("{{\"color\":{}}}", "9".repeat(100_000))),
    ] {
        let answer = post(&server, WIDGETS, body).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    // A set of a hundred thousand is held to its order of size, not to the square of it.
    let tags: Vec<String> = (0..100_000).map(|number| format!("t{number}")).collect();
    server.post(WIDGETS, &widget("many", json!({"tags": tags}))).await.expect(201);
    let ports: Vec<Value> = (0..30_000).map(|number| json!({"port": number})).collect();
    server.post(WIDGETS, &widget("ports", json!({"ports": ports}))).await.expect(201);
    let patch = json!({"spec": {"color": "red"}});
    server.patch(format!("{WIDGETS}/ports"), &patch).await.ok();
    assert_eq!(server.get(WIDGETS).await.ok()["items"].as_array().map(Vec::len), Some(3));
    is_well(&server).await;
}
