//! What objects cost on their way between bytes and memory: JSON beside protobuf, in one run.
//!
//!     cargo bench --bench codec [-- --seconds N]
//!
//! Pods of about 5 and 14 KB of JSON. Allocations are counted. Absolutes depend on the machine; ratios are the result.

mod counting;
mod custom;
mod pod;
mod requests;
mod rules;
mod start;
mod timing;

use std::hint::black_box;
use std::time::Duration;

use clap::Parser;
use rowplane::codec::at_rest::{self, StorageMediaType, packed};
use rowplane::codec::object::Draft;
use rowplane::codec::protobuf;
use rowplane::json::text::write_json;
use rowplane::revision::Revision;
use rowplane::schema::builtin;
use rowplane::schema::names::Gvk;
use rowplane::tree::Map;

use self::counting::Counting;
use self::timing::{Measured, measure};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Parser)]
struct Arguments {
    /// How long each line runs.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let duration = Duration::from_secs_f64(arguments.seconds);
    schemas();
    for containers in [1, 4] {
        pod(containers, duration);
    }
    custom::run(duration);
    rules::run(duration);
    requests::run();
    start::run();
}

fn schemas() {
    let before = counting::held();
    builtin::kind(&Gvk::fixed("v1", "PodList"))
        .and_then(|list| protobuf::items_number(&list).ok())
        .expect("a list");
    println!("types of all built-in kinds: {} KB\n", (counting::held() - before) / 1024);
}

fn pod(containers: usize, duration: Duration) {
    let kind = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("a kind");
    let at_rest = |media| Draft::encode("default", "web", pod::pod("web", containers), media).value().clone();
    let json = at_rest(StorageMediaType::Json);
    let message = at_rest(StorageMediaType::Protobuf);
    let raw = at_rest::open(&message).expect("an envelope").message;
    let packed = packed::pack(&raw).expect("it repeats itself");
    let tree: Map = serde_json::from_slice(&json).expect("an object");
    println!(
        "Pod of {containers} containers: {} bytes of JSON, {} of protobuf at rest",
        json.len(),
        message.len()
    );
    println!("({:.2} of JSON)\n", message.len() as f64 / json.len() as f64);

    let decode_json = || serde_json::from_slice::<Map>(black_box(&json)).expect("decodes");
    let encode_json = || {
        let mut out = Vec::with_capacity(2048);
        write_json(&mut out, black_box(&tree));
        out
    };
    let decode = || protobuf::decode(&kind, black_box(&raw)).expect("decodes");
    let encode = || protobuf::encode(&kind, black_box(&tree)).expect("encodes");
    let object =
        |value: &bytes::Bytes| Draft::parse("default", "web", value.clone()).into_object(Revision(123_456));
    let versioned = || protobuf::with_version(black_box(&raw), Revision(123_456)).expect("a message");
    let draft = |media| {
        Draft::encode("default", "web", black_box(&tree).clone(), media).into_object(Revision(123_456))
    };
    let lines = [
        ("decode to a tree, JSON", measure(duration, decode_json)),
        ("decode to a tree, protobuf", measure(duration, decode)),
        ("encode a tree, JSON", measure(duration, encode_json)),
        ("encode a tree, protobuf", measure(duration, encode)),
        (
            "both, JSON",
            measure(duration, || {
                let mut out = Vec::with_capacity(2048);
                write_json(&mut out, &decode_json());
                out
            }),
        ),
        ("both, protobuf", measure(duration, || protobuf::encode(&kind, &decode()).expect("encodes"))),
        ("pack a message", measure(duration, || packed::pack(black_box(&raw)))),
        ("unpack it", measure(duration, || packed::unpack(black_box(&packed)))),
        ("stored JSON into memory", measure(duration, || object(&json))),
        ("stored protobuf into memory, as JSON", measure(duration, || object(&message))),
        ("stored protobuf for a client of protobuf", measure(duration, versioned)),
        ("a write: tree to JSON at rest and memory", measure(duration, || draft(StorageMediaType::Json))),
        (
            "a write: tree to protobuf at rest and memory",
            measure(duration, || draft(StorageMediaType::Protobuf)),
        ),
        ("clone of the tree, which is in the two above", measure(duration, || black_box(&tree).clone())),
    ];
    Measured::print(&lines);
}
