//! Lists of all kinds: complete, in pages from different servers, of the present and of the past.

use std::sync::atomic::Ordering;

use http::StatusCode;
use rand::RngExt;
use rand::rngs::StdRng;

use super::forms::{self, Form};
use super::history::{Action, Answer, Call, Filter, Freshness, Key, Kind, Listing, Time, Version};
use super::load::{COLOURS, Done, NAMESPACES, PATIENCE, Shared, is_trouble};
use super::object::{collection, items, selector};
use super::process::pause;
use super::releases::Releases;
use crate::support::rest::{Answer as Response, revision};

/// A complete list of any kind.
pub async fn list(shared: &Shared, random: &mut StdRng, done: &mut Done) {
    let newest = shared.newest.load(Ordering::SeqCst);
    let recent = newest.saturating_sub(random.random_range(0..150));
    let (freshness, query) = match random.random_range(0..6) {
        0..3 => (Freshness::Latest, String::new()),
        3 => (Freshness::Any, "resourceVersion=0&".to_owned()),
        4 => (
            Freshness::AtLeast(newest),
            format!("resourceVersion={newest}&resourceVersionMatch=NotOlderThan&"),
        ),
        _ => (Freshness::Exactly(recent), format!("resourceVersion={recent}&resourceVersionMatch=Exact&")),
    };
    let filter = pick_filter(random);
    let keys = shared.keys();
    let called = shared.now();
    let path = collection(filter.kind, filter.namespace.as_deref());
    let path = format!("{path}?{query}{}", selector(&filter));
    let form = Form::pick(random);
    let request = forms::get(shared.any(random), &path, filter.kind, form);
    let response = tokio::time::timeout(PATIENCE, request).await;
    let returned = shared.now();
    let Ok(Ok(Response { status: StatusCode::OK, body })) = response else { return };
    let (revision, items) = (revision(&body), items(&body, filter.kind));
    if freshness == Freshness::Latest && filter.is_whole() {
        let keys: Vec<Key> = keys.into_iter().filter(|key| Kind::of(key) == filter.kind).collect();
        done.calls.extend(reads(&keys, &items, called, returned));
    }
    let page_revisions = vec![revision];
    done.listings.push(Listing { freshness, filter, called, returned, revision, page_revisions, items });
}

/// A fresh list counts as a read of every object.
fn reads(keys: &[Key], items: &[(Key, Version)], called: Time, returned: Time) -> Vec<Call> {
    let read = |key: &Key| {
        let found = items.iter().find(|(found, _)| found == key);
        let answer = found.map_or(Answer::Missing, |(_, version)| Answer::Found(version.clone()));
        Call { key: key.clone(), action: Action::Read, answer, called, returned }
    };
    keys.iter().map(read).collect()
}

/// Requests every page from another server. A page that fails is requested again with the same token.
pub async fn list_in_pages(shared: &Shared, random: &mut StdRng, done: &mut Done) {
    let filter = pick_filter(random);
    let limit = random.random_range(2..20);
    let called = shared.now();
    let mut listing: Option<Listing> = None;
    let mut token = String::new();
    while !shared.stopped() {
        let path = collection(filter.kind, filter.namespace.as_deref());
        let path = format!("{path}?limit={limit}&continue={token}&{}", selector(&filter));
        let response = tokio::time::timeout(PATIENCE, shared.any(random).get(&path)).await;
        let returned = shared.now();
        match response {
            Ok(Ok(Response { status: StatusCode::OK, body })) => {
                let revision = revision(&body);
                let listing = listing.get_or_insert_with(|| Listing {
                    freshness: Freshness::Latest,
                    filter: filter.clone(),
                    called,
                    returned,
                    revision,
                    page_revisions: Vec::new(),
                    items: Vec::new(),
                });
                listing.page_revisions.push(revision);
                listing.items.extend(items(&body, filter.kind));
                body["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
                if token.is_empty() {
                    break;
                }
            }
            // The snapshot was compacted: the pages so far are not a list.
            Ok(Ok(Response { status: StatusCode::GONE, .. })) => return,
            // An early release does not know another server's new key at once.
            Ok(Ok(Response { status: StatusCode::BAD_REQUEST, body }))
                if Releases::chosen().are_narrow()
                    && body["message"].as_str().is_some_and(|told| told.contains("unknown signing key")) =>
            {
                return;
            }
            Ok(Ok(Response { status, body })) if !is_trouble(status) => panic!("{path}: {status}: {body}"),
            // Without a first page, the list has not started.
            _ if listing.is_none() => return,
            _ => pause().await,
        }
    }
    if token.is_empty() {
        done.listings.extend(listing);
    }
}

fn pick_filter(random: &mut StdRng) -> Filter {
    let kind = [Kind::ConfigMap, Kind::ConfigMap, Kind::Deployment, Kind::Pod][random.random_range(0..4)];
    let all = Filter { kind, ..Filter::default() };
    match random.random_range(0..8) {
        6 => Filter { not_named: Some(format!("{}0-0", kind.prefix())), ..all },
        0 => Filter { namespace: Some(NAMESPACES[random.random_range(0..2)].to_owned()), ..all },
        1 => Filter { colour: Some(COLOURS[random.random_range(0..2)].to_owned()), ..all },
        _ => all,
    }
}
