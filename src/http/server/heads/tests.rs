use std::task::Waker;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Semaphore;

use super::super::turns::Turns;
use super::*;
use crate::layered::Layered;

fn heads(places: &Arc<Semaphore>) -> (Layered<DuplexStream, Heads>, DuplexStream, Arc<Connection>) {
    let (stream, peer) = duplex(1 << 20);
    let connection =
        Arc::new(Connection::accepted_at(1, Arc::new(Turns::new(Default::default())), Arc::default()));
    let (layer, _) = Heads::new(connection.clone(), PollSemaphore::new(places.clone()));
    (Layered { stream, layer }, peer, connection)
}

/// Whether something comes for hyper, or all is held back.
fn gives(heads: &mut Layered<DuplexStream, Heads>) -> bool {
    let mut bytes = [0; 8192];
    let mut buffer = ReadBuf::new(&mut bytes);
    let read = Pin::new(heads).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
    read.is_ready() && !buffer.filled().is_empty()
}

#[tokio::test]
async fn large_heads_without_a_credential_wait_for_a_place() {
    let places = Arc::new(Semaphore::new(1));
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(2 * SMALL));
    let (mut first, mut first_peer, _) = heads(&places);
    first_peer.write_all(head.as_bytes()).await.expect("room");
    assert!(!gives(&mut first));
    assert_eq!(places.available_permits(), 0);
    let (mut second, mut second_peer, connection) = heads(&places);
    second_peer.write_all(head.as_bytes()).await.expect("room");
    second_peer.write_all(b"\r\n\r\n").await.expect("room");
    assert!(!gives(&mut second), "there is no place");
    assert!(second.layer.raw.len() < head.len(), "and no more is read");
    connection.set_authenticated();
    assert!(gives(&mut second), "one with a credential needs none");
    drop((first, second));
    assert_eq!(places.available_permits(), 1);
}

#[tokio::test]
async fn bytes_of_another_protocol_wait_until_the_answer_says_so() {
    let upgrade = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    for (answer, want) in [(SWITCHES, "\u{0}bytes"), (STAYS, "GET / HTTP/1.1\r\nconnection: close\r\n\r\n")] {
        let (mut heads, mut peer, _) = heads(&Arc::new(Semaphore::new(1)));
        peer.write_all(upgrade.as_bytes()).await.expect("room");
        peer.write_all(b"\0bytes").await.expect("room");
        let mut text = [0; 1000];
        let read = heads.read(&mut text).await.expect("a head");
        assert_eq!(&text[..read], upgrade.as_bytes());
        assert!(!gives(&mut heads));
        heads.layer.announced.switched.store(answer, Ordering::Release);
        peer.shutdown().await.expect("an end");
        let read = heads.read(&mut text).await.expect("the rest");
        assert_eq!(String::from_utf8_lossy(&text[..read]), want);
    }
}

#[test]
fn a_head_is_found_where_it_ends() {
    for (text, end) in [
        ("a\r\n\r\nb", Some(5)),
        ("a\n\nb", Some(3)),
        ("a\r\nb\n\r\n", Some(7)),
        ("a\r\nb\r\n\r", None),
        ("\r\n", Some(2)),
    ] {
        assert_eq!(head::end(text.as_bytes(), 0), end, "{text:?}");
    }
}
