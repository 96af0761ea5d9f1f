//! LIST of many objects: complete, in pages, by label, and ten at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use http_body_util::BodyExt;

use crate::client::{Connection, JSON, PROTOBUF, Protocol};
use crate::kinds::{self, customs};
use crate::reference_stream::Reference;
use crate::report::{self, Table};
use crate::scratch::{self, Collection, Scratch};
use crate::stats::Latencies;
use crate::{Context, Result};

const MIN_REPEATS: usize = 5;
const PAGE: usize = 500;
const AT_ONCE: usize = 10;
/// Variables of a Pod, chosen so that it has about 5 KB as JSON, with its managedFields.
const VARIABLES: usize = 26;

pub async fn run(context: &Context, scratch: &mut Scratch) -> Result<Vec<Table>> {
    let mut whole = Table::new(
        format!("Full LIST, {} bytes an object, Pods of 5 KB", context.args.object_bytes),
        &[
            "objects",
            "protocol",
            "MB",
            "GB/s",
            "first byte p50 ms",
            "first byte max ms",
            "p50 ms",
            "p99 ms",
            "max ms",
            "server CPU ms each",
            "of hyper's stream",
        ],
    );
    let mut paged = Table::new(
        format!("LIST in pages of {PAGE}"),
        &["objects", "pages", "pages/s", "page p50 ms", "page p99 ms", "page max ms", "whole list ms"],
    );
    let mut selected = Table::new(
        "LIST with a label selector that matches 1 %",
        &["objects", "items", "per second", "p50 ms", "p99 ms", "max ms"],
    );
    let mut together = Table::new(
        format!("{AT_ONCE} full LISTs at once"),
        &["objects", "GB/s in all", "p50 ms", "max ms", "memory before MB", "peak MB", "growth MB"],
    );
    let mut memory = Table::new(
        "Memory of cached objects",
        &["objects", "filled in s", "resident before MB", "after MB", "KB per object"],
    );
    for &count in &context.args.objects {
        let collection = filled(context, scratch, count, &mut memory).await?;
        let bytes = measure_forms(context, &collection, ("", count), &mut whole).await?;
        let probe = Connection::open(&context.target, context.protocol).await?;
        measure_pages(context, &probe, &collection, count, &mut paged).await?;
        measure_selected(context, &probe, &collection, count, &mut selected).await?;
        measure_together(context, &collection, count, bytes, &mut together).await?;
    }
    for &count in &context.args.customs {
        custom_objects(context, scratch, count, &mut whole).await?;
    }
    for &count in &context.args.pods {
        let collection = scratch.namespace(context, &format!("pods-{count}")).await?.pods();
        eprintln!("creating {count} Pods");
        let pod = |i| kinds::pod_of(VARIABLES, &scratch::name(i), "0", "");
        scratch::fill_with(&context.target, &collection, count, pod).await?;
        measure_forms(context, &collection, (" Pods", count), &mut whole).await?;
    }
    Ok(vec![memory, whole, paged, selected, together])
}

/// Measures the whole list of custom objects that look like the Pods. They have no form in protobuf.
async fn custom_objects(
    context: &Context,
    scratch: &mut Scratch,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    customs::define(context, scratch).await?;
    let collection = scratch.namespace(context, &format!("customs-{count}")).await?;
    let namespace = collection.path.split('/').nth(4).unwrap_or_default();
    let collection = Collection { path: customs::collection(namespace).into() };
    eprintln!("creating {count} custom objects");
    let object = |i| customs::object(VARIABLES, &scratch::name(i), "0", "");
    scratch::fill_with(&context.target, &collection, count, object).await?;
    let probe = Connection::open(&context.target, context.protocol).await?;
    let bytes = verified_bytes(&probe, &collection, count).await?;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        measure_whole(context, &collection, (protocol, JSON), (format!("{count} custom"), bytes), table)
            .await?;
    }
    Ok(())
}

/// Measures the whole list in JSON and in protobuf, each over both protocols. Returns the size of the JSON.
async fn measure_forms(
    context: &Context,
    collection: &Collection,
    (kind, count): (&str, usize),
    table: &mut Table,
) -> Result<usize> {
    let mut json = 0;
    for accept in [JSON, PROTOBUF] {
        // After the first list, all protobuf messages have been made.
        let probe = Connection::open(&context.target, context.protocol).await?.accepting(accept);
        let bytes = verified_bytes(&probe, collection, count).await?;
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let objects = format!("{count}{kind}");
            measure_whole(context, collection, (protocol, accept), (objects, bytes), table).await?;
        }
        if accept == JSON {
            json = bytes;
        }
    }
    Ok(json)
}

async fn filled(
    context: &Context,
    scratch: &mut Scratch,
    count: usize,
    table: &mut Table,
) -> Result<Collection> {
    let collection = scratch.namespace(context, &format!("list-{count}")).await?;
    let (start, before) = (Instant::now(), context.server.resident_mb());
    scratch::fill(&context.target, &collection, count, context.args.object_bytes).await?;
    let (elapsed, after) = (start.elapsed(), context.server.resident_mb());
    let each = before.zip(after).map(|(before, after)| (after - before) * 1024.0 / count as f64);
    table.row(vec![
        count.to_string(),
        report::number(elapsed.as_secs_f64()),
        report::option(before),
        report::option(after),
        report::option(each),
    ]);
    Ok(collection)
}

/// Whether a list holds all objects that were made. A namespace may have a ConfigMap of its own, `kube-root-ca.crt`.
fn is_whole(items: usize, count: usize) -> bool {
    items == count || items == count + 1
}

/// The size of a full LIST, after a check that it has all objects.
async fn verified_bytes(connection: &Connection, collection: &Collection, count: usize) -> Result<usize> {
    let answer = connection.get(&collection.path).await?;
    let items = items(&answer.body).max(messages(&answer.body));
    if !is_whole(items, count) {
        return Err(format!("a LIST of {count} objects has {items}").into());
    }
    Ok(answer.body.len())
}

fn items(list: &[u8]) -> usize {
    memchr::memmem::find_iter(list, b"\"uid\":").count()
}

/// The number of objects in a protobuf list: each has one entry with the key `mark`.
fn messages(list: &[u8]) -> usize {
    memchr::memmem::find_iter(list, b"\x0a\x04mark\x12").count()
}

struct Download {
    bytes: usize,
    first_byte: Duration,
    total: Duration,
}

async fn download(connection: &Connection, path: &str) -> Result<Download> {
    let start = Instant::now();
    let (head, mut body) = connection.send(Method::GET, path, None).await?.into_parts();
    if !head.status.is_success() {
        return Err(format!("LIST was answered with {}", head.status).into());
    }
    let (mut bytes, mut first_byte) = (0, None);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            first_byte.get_or_insert_with(|| start.elapsed());
            bytes += data.len();
        }
    }
    Ok(Download { bytes, first_byte: first_byte.ok_or("an empty answer")?, total: start.elapsed() })
}

struct Downloads {
    first_bytes: Latencies,
    totals: Latencies,
    gigabytes_per_second: f64,
}

/// Downloads repeatedly; each download must have `bytes` bytes.
async fn downloads(
    connection: &Connection,
    path: &str,
    bytes: usize,
    duration: Duration,
) -> Result<Downloads> {
    let (mut first_bytes, mut totals, mut all) = (Latencies::default(), Latencies::default(), 0);
    let start = Instant::now();
    while totals.len() < MIN_REPEATS || start.elapsed() < duration {
        let download = download(connection, path).await?;
        // The list's own resourceVersion may become a digit longer.
        if download.bytes.abs_diff(bytes) > 1 {
            return Err(format!("a LIST of {bytes} bytes came as {}", download.bytes).into());
        }
        first_bytes.add(download.first_byte);
        totals.add(download.total);
        all += download.bytes;
    }
    let gigabytes_per_second = all as f64 / start.elapsed().as_secs_f64() / 1e9;
    Ok(Downloads { first_bytes, totals, gigabytes_per_second })
}

async fn measure_whole(
    context: &Context,
    collection: &Collection,
    (protocol, accept): (Protocol, &'static str),
    (objects, bytes): (String, usize),
    table: &mut Table,
) -> Result<()> {
    let connection = Connection::open(&context.target, protocol).await?.accepting(accept);
    let cpu = context.server.cpu();
    let mut list = downloads(&connection, &collection.path, bytes, context.seconds()).await?;
    let cpu_ms = context.server.micros_each(cpu, list.totals.len()).map(|us| us / 1000.0);
    let reference = match context.args.reference_stream {
        true => Some(reference_speed(context, protocol, bytes).await?),
        false => None,
    };
    let (first, total) = (list.first_bytes.summary(), list.totals.summary());
    let mut row = vec![
        objects,
        format!("{protocol:?}{}", if accept == PROTOBUF { ", protobuf" } else { "" }),
        report::number(bytes as f64 / 1e6),
        report::number(list.gigabytes_per_second),
        report::number(first.p50),
        report::number(first.max),
    ];
    row.extend(report::times(total));
    row.push(report::option(cpu_ms));
    row.push(match reference {
        Some(speed) => {
            format!("{} of {}", report::number(list.gigabytes_per_second / speed), report::number(speed))
        }
        None => "-".to_owned(),
    });
    table.row(row);
    Ok(())
}

/// The speed in GB/s at which hyper sends a prepared buffer of the same size.
async fn reference_speed(context: &Context, protocol: Protocol, bytes: usize) -> Result<f64> {
    let reference = Reference::start(bytes).await?;
    let connection = Connection::open(&reference.target, protocol).await?;
    download(&connection, "/").await?;
    Ok(downloads(&connection, "/", bytes, context.seconds()).await?.gigabytes_per_second)
}

async fn measure_pages(
    context: &Context,
    connection: &Connection,
    collection: &Collection,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    let (mut pages, mut wholes) = (Latencies::default(), Latencies::default());
    let start = Instant::now();
    while wholes.len() == 0 || start.elapsed() < context.seconds() {
        let (whole, mut seen, mut token) = (Instant::now(), 0, String::new());
        loop {
            let page = Instant::now();
            let path = format!("{}?limit={PAGE}&continue={token}", collection.path);
            let answer = connection.get(&path).await?;
            pages.add_since(page);
            seen += items(&answer.body);
            match continue_token(&answer.body) {
                Some(next) => token = next,
                None => break,
            }
        }
        wholes.add_since(whole);
        if !is_whole(seen, count) {
            return Err(format!("{count} objects came as {seen} in pages").into());
        }
    }
    let per_second = pages.len() as f64 / start.elapsed().as_secs_f64();
    let mut row = vec![count.to_string(), count.div_ceil(PAGE).to_string(), report::number(per_second)];
    row.extend(report::times(pages.summary()));
    row.push(report::number(wholes.summary().p50));
    table.row(row);
    Ok(())
}

/// `metadata.continue`, found without parsing a megabyte of items; the items have no such field.
fn continue_token(list: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"\"continue\":\"";
    let after = &list[memchr::memmem::find(list, NAME)? + NAME.len()..];
    let token = &after[..memchr::memchr(b'"', after)?];
    (!token.is_empty()).then(|| String::from_utf8_lossy(token).into_owned())
}

async fn measure_selected(
    context: &Context,
    connection: &Connection,
    collection: &Collection,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    let path = format!("{}?labelSelector=share%3Done-in-100", collection.path);
    let (mut latencies, start) = (Latencies::default(), Instant::now());
    let expected = count.div_ceil(100);
    while latencies.len() < MIN_REPEATS || start.elapsed() < context.seconds() {
        let request = Instant::now();
        let found = items(&connection.get(&path).await?.body);
        latencies.add_since(request);
        if found != expected {
            return Err(format!("{found} objects were selected instead of {expected}").into());
        }
    }
    let per_second = latencies.len() as f64 / start.elapsed().as_secs_f64();
    let mut row = vec![count.to_string(), expected.to_string(), report::number(per_second)];
    row.extend(report::times(latencies.summary()));
    table.row(row);
    Ok(())
}

async fn measure_together(
    context: &Context,
    collection: &Collection,
    count: usize,
    bytes: usize,
    table: &mut Table,
) -> Result<()> {
    let mut connections = Vec::new();
    for _ in 0..AT_ONCE {
        connections.push(Arc::new(Connection::open(&context.target, context.protocol).await?));
    }
    context.server.reset_peak();
    let (before, start) = (context.server.resident_mb(), Instant::now());
    let mut lists = tokio::task::JoinSet::new();
    for connection in connections {
        let path = collection.path.clone();
        lists.spawn(async move { download(&connection, &path).await });
    }
    let mut latencies = Latencies::default();
    while let Some(list) = lists.join_next().await {
        let list = list??;
        if list.bytes.abs_diff(bytes) > 1 {
            return Err(format!("a LIST of {bytes} bytes came as {}", list.bytes).into());
        }
        latencies.add(list.total);
    }
    let (elapsed, peak) = (start.elapsed(), context.server.peak_mb());
    let times = latencies.summary();
    table.row(vec![
        count.to_string(),
        report::number((bytes * AT_ONCE) as f64 / elapsed.as_secs_f64() / 1e9),
        report::number(times.p50),
        report::number(times.max),
        report::option(before),
        report::option(peak),
        report::option(before.zip(peak).map(|(before, peak)| peak - before)),
    ]);
    Ok(())
}
