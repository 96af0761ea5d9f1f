//! Traces of requests (`--tracing-config-file`): the spans that a collector is sent. The store does not matter to them, so the
//! tests run in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rowplane::protowire::Reader;
use rowplane::traces::config::{Configuration, Endpoint};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::client::Client;
use crate::support::database::Database;
use crate::support::grpc::{Mood, Service, serve};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};
use crate::webhooks::{VALIDATING, allowing, configure, hook};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A span as the collector has got it.
#[derive(Clone, Debug, Default)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, String>,
    events: Vec<String>,
    /// The trace that it is linked to.
    link: String,
}

struct Collector {
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    mood: Mutex<Mood>,
    spans: watch::Sender<Vec<Span>>,
}

impl Collector {
    fn start(socket: &Path) -> Self {
        let state = Arc::<State>::default();
        Self { _tasks: serve(socket, state.clone()), state }
    }

    /// The spans of a trace, once one of this name has come.
    async fn trace(&self, trace: &str, name: &str) -> Vec<Span> {
        let mut spans = self.state.spans.subscribe();
        let of_trace = |span: &&Span| span.trace == trace;
        let has_come = |spans: &Vec<Span>| spans.iter().filter(of_trace).any(|span| span.name == name);
        let found = spans.wait_for(has_come).await.expect("spans");
        found.iter().filter(of_trace).cloned().collect()
    }
}

impl Service for State {
    fn mood(&self) -> &Mutex<Mood> {
        &self.mood
    }

    fn call(&self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, &'static str)> {
        assert_eq!(path, "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
        let spans: Vec<Span> = parts(message, 1)
            .iter()
            .flat_map(|of_resource| {
                let resource = pairs(&parts(of_resource, 1)[0], 1);
                assert_eq!(resource["service.name"], "apiserver");
                parts(of_resource, 2).iter().flat_map(|scope| parts(scope, 2)).collect::<Vec<_>>()
            })
            .map(|span| read(&span))
            .collect();
        self.spans.send_modify(|known| known.extend(spans));
        Ok(Vec::new())
    }
}

/// The values of a field of bytes.
fn parts(message: &[u8], number: i32) -> Vec<Vec<u8>> {
    let (mut found, mut reader) = (Vec::new(), Reader::new(message));
    while let Some(tag) = reader.tag().expect("a tag") {
        if tag.number() == number {
            found.push(reader.bytes().expect("bytes").to_vec());
        } else {
            reader.skip(tag).expect("a field");
        }
    }
    found
}

fn text(message: &[u8], number: i32) -> String {
    String::from_utf8(parts(message, number).concat()).expect("UTF-8")
}

/// The attributes whose values are texts.
fn pairs(message: &[u8], number: i32) -> BTreeMap<String, String> {
    let pairs = parts(message, number);
    pairs.iter().map(|pair| (text(pair, 1), text(&parts(pair, 2)[0], 1))).collect()
}

fn read(span: &[u8]) -> Span {
    let hex = |number| data_encoding::HEXLOWER.encode(&parts(span, number).concat());
    Span {
        trace: hex(1),
        id: hex(2),
        parent: hex(4),
        name: text(span, 5),
        attributes: pairs(span, 9),
        events: parts(span, 11).iter().map(|event| text(event, 2)).collect(),
        link: parts(span, 13)
            .first()
            .map_or(String::new(), |link| data_encoding::HEXLOWER.encode(&parts(link, 1).concat())),
    }
}

/// A server that sends spans to this socket, and samples so many of a million requests by itself.
async fn start(setup: &mut Setup, socket: &Path, rate: u32) -> TestServer {
    let endpoint = Endpoint::Unix(socket.to_str().expect("UTF-8").to_owned());
    setup.traces = Some(Configuration { endpoint, rate });
    setup.start().await
}

async fn create(client: &Client, name: &str, traceparent: &str) {
    let request = client.post(CONFIGMAPS, &config_map(name, json!({})));
    let request = request.header("traceparent", traceparent).header("user-agent", "agent");
    request.header("audit-id", "the-id").await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_is_followed_through_verbs_and_webhooks() {
    let (mut setup, web) = (Setup::new(Database::memory()), allowing().await);
    let socket = setup.file("collector.sock");
    let collector = Collector::start(&socket);
    let server = start(&mut setup, &socket, 0).await;
    let all = hook("all", web.client_config("/"), json!({}), json!({}));
    configure(&server, VALIDATING, "all", json!([all])).await;
    create(&server, "not-sampled", &format!("00-{TRACE}-{PARENT}-00")).await;
    create(&server, "a", &format!("00-{TRACE}-{PARENT}-01")).await;
    let route = "POST /api/v1/namespaces/{:namespace}/configmaps";
    let spans = collector.trace(TRACE, route).await;
    let span = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
    };
    let (request, verb, call) = (span(route), span("Create"), span("Call validating webhook"));
    assert_eq!(spans.len(), 3, "{spans:?}");
    assert_eq!((&*request.parent, &verb.parent, &call.parent), (PARENT, &request.id, &verb.id));
    let attributes = |span: &Span, names: &[&str]| {
        names.iter().map(|name| span.attributes.get(*name).cloned().unwrap_or_default()).collect::<Vec<_>>()
    };
    let path = "/api/v1/namespaces/t/configmaps";
    assert_eq!(
        attributes(
            request,
            &["http.request.method", "url.path", "http.target", "user_agent.original", "audit-id"]
        ),
        ["POST", path, path, "agent", "the-id"]
    );
    assert_eq!(
        attributes(
            verb,
            &["api-version", "resource", "namespace", "scope", "url", "user-agent", "audit-id", "verb"]
        ),
        ["v1", "configmaps", "t", "namespace", path, "agent", "the-id", "create"]
    );
    assert_eq!(
        verb.events,
        [
            "limitedReadBody succeeded",
            "About to store object in database",
            "Write to database call succeeded",
            "About to write a response",
        ]
    );
    assert_eq!(
        attributes(call, &["configuration", "webhook", "resource", "operation"]),
        ["all", "all.ex.io", "/v1, Resource=configmaps", "CREATE"]
    );
    assert_eq!(call.events, ["Request completed"]);
    let told: Vec<_> = web.seen().iter().map(|seen| seen.headers.get("traceparent").cloned()).collect();
    assert_eq!(told, [None, Some(format!("00-{TRACE}-{}-01", call.id).parse().expect("a header"))]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_begin_traces_of_their_own() {
    let mut setup = Setup::new(Database::memory());
    let socket = setup.file("collector.sock");
    let collector = Collector::start(&socket);
    let server = start(&mut setup, &socket, 1_000_000).await;
    let alice = server.token("alice-token");
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    assert_eq!(alice.get("/version").header("traceparent", &traceparent).await.status, 200);
    let mut spans = collector.state.spans.subscribe();
    let is_linked = |span: &&Span| span.link == TRACE;
    // What is lent of the spans must be given back, or no more can come.
    let linked = {
        let has_come = |spans: &Vec<Span>| spans.iter().any(|span| is_linked(&span));
        let found = spans.wait_for(has_come).await.expect("spans");
        found.iter().find(is_linked).expect("a linked span").clone()
    };
    assert_eq!((&*linked.name, &*linked.parent), ("GET", ""));
    assert_ne!(linked.trace, TRACE);
    drop(collector);
    server.get("/version").await.ok();
    let is_told = "rowplane_trace_spans_total{outcome=\"failed\"}";
    let metrics = async || server.get("/metrics").await.text();
    while !metrics().await.contains(is_told) {
        tokio::task::yield_now().await;
    }
    server.stop().await;
}
