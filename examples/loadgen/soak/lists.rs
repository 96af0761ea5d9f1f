//! Clients that list: a namespace whole, page by page, or what a selector takes of it.

use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use tokio::task::JoinSet;

use super::counts::one;
use super::{NAMESPACES, SHARDS, Soak};
use crate::Result;
use crate::client::{Connection, Protocol};

const LISTERS: usize = 32;
const LISTERS_PER_CONNECTION: usize = 8;
const PAGE: usize = 50;
/// After so many pages a client begins anew.
const PAGES: u64 = 5;
/// Writers delete an object before they create the next one, and so many of them may be between the two.
const AWAY: usize = 64;

pub async fn start(soak: &Arc<Soak>, clients: &mut JoinSet<()>) -> Result<()> {
    if soak.lists.is_at_rest() {
        return Ok(());
    }
    let mut connections = Vec::new();
    for n in 0..LISTERS / LISTERS_PER_CONNECTION {
        connections.push(Arc::new(Connection::open(soak.target(n), Protocol::Http2).await?));
    }
    for n in 0..LISTERS {
        let lister = Lister { soak: soak.clone(), connection: connections[n % connections.len()].clone() };
        clients.spawn(lister.work());
    }
    Ok(())
}

struct Lister {
    soak: Arc<Soak>,
    connection: Arc<Connection>,
}

impl Lister {
    async fn work(self) {
        loop {
            let turn = self.soak.lists.turn().await;
            let namespace = turn as usize / 20 % NAMESPACES;
            let shard = turn as usize % SHARDS;
            let in_namespace = self.soak.objects.div_ceil(NAMESPACES);
            match turn % 20 {
                0 => drop(self.list(namespace, "resourceVersion=0", in_namespace).await),
                1 => drop(self.list(namespace, "", in_namespace).await),
                // A page is a list of its own, and has a turn of its own.
                2..4 => self.pages(namespace).await,
                _ => {
                    let selector = format!("labelSelector=shard%3D{shard}");
                    drop(self.list(namespace, &selector, in_namespace.div_ceil(SHARDS)).await);
                }
            }
        }
    }

    async fn pages(&self, namespace: usize) {
        let mut query = format!("limit={PAGE}");
        for page in 0..PAGES {
            if page > 0 {
                self.soak.lists.turn().await;
            }
            let Some(next) = self.list(namespace, &query, PAGE).await else { return };
            query = format!("limit={PAGE}&continue={next}");
        }
    }

    /// Lists about so many objects, and returns the token of the next page.
    async fn list(&self, namespace: usize, query: &str, about: usize) -> Option<String> {
        let began = Instant::now();
        let path = format!("{}?{query}", self.soak.collections[namespace].path);
        let answer = match self.connection.call(http::Method::GET, &path, None).await {
            Ok(answer) if answer.status.is_success() => answer,
            // The state of the first page has been compacted.
            Ok(answer) if answer.status == StatusCode::GONE => {
                one(&self.soak.counts.gone);
                return None;
            }
            Ok(answer) => {
                let what = format!("list: {}", answer.status.as_u16());
                self.soak.counts.error(&what, String::from_utf8_lossy(&answer.body));
                return None;
            }
            Err(error) => {
                self.soak.counts.error("list: no answer", error);
                return None;
            }
        };
        self.soak.counts.list_took(began.elapsed());
        one(&self.soak.counts.lists);
        let items = memchr::memmem::find_iter(&answer.body, b"\"uid\":").count();
        if items > about + 1 || items + AWAY < about {
            self.soak.counts.error("list: another number of objects", format!("{items} of {about}: {path}"));
        }
        continue_token(&answer.body)
    }
}

fn continue_token(list: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"\"continue\":\"";
    let after = &list[memchr::memmem::find(&list[..list.len().min(4096)], NAME)? + NAME.len()..];
    let token = &after[..memchr::memchr(b'"', after)?];
    (!token.is_empty()).then(|| String::from_utf8_lossy(token).into_owned())
}
