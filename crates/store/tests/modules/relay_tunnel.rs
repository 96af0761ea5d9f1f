//! Tests of `relay::tunnel`.

use std::num::NonZeroU64;
use std::time::Duration;

use rowplane_store::relay::tunnel::copy_both_ways;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::Instant;

#[tokio::test]
async fn each_direction_is_limited() {
    let (mut client, near) = duplex(64 << 10);
    let (far, mut server) = duplex(64 << 10);
    let tunnel = tokio::spawn(copy_both_ways(near, far, NonZeroU64::new(20_000)));
    let began = Instant::now();
    client.write_all(&[7; 10_000]).await.expect("writes");
    let mut found = vec![0; 10_000];
    server.read_exact(&mut found).await.expect("reads");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(350), "{took:?}");
    drop((client, server));
    tunnel.await.expect("ends");
}

#[tokio::test]
async fn what_one_side_still_says_arrives_when_the_other_has_ended() {
    let (mut client, near) = duplex(1024);
    let (far, mut server) = duplex(1024);
    let tunnel = tokio::spawn(copy_both_ways(near, far, None));
    client.write_all(b"question").await.expect("writes");
    client.shutdown().await.expect("ends its side");
    let mut asked = Vec::new();
    server.read_to_end(&mut asked).await.expect("reads to the end");
    assert_eq!(asked, b"question");
    server.write_all(b"answer").await.expect("writes");
    drop(server);
    let mut told = Vec::new();
    client.read_to_end(&mut told).await.expect("reads to the end");
    assert_eq!(told, b"answer");
    tunnel.await.expect("ends");
}
