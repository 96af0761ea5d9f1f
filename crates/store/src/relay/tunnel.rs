//! Bytes between two connections, both ways, as they come.

use std::io;
use std::num::NonZeroU64;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::{sleep, timeout};

/// How much of one direction is on its way here.
const BUFFER: usize = 16 << 10;
/// The pieces into which a limit divides a second.
const PIECES: u64 = 10;
/// How long the other direction may go on when one has ended. Upstream ends it at once, and may lose what is on its way.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Copies until one of both ends. `limit` is in bytes per second, for each direction.
pub async fn copy_both_ways<A, B>(one: A, other: B, limit: Option<NonZeroU64>)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let ((mut from_one, mut to_one), (mut from_other, mut to_other)) = (split(one), split(other));
    {
        let mut there = pin!(copy(&mut from_one, &mut to_other, limit));
        let mut back = pin!(copy(&mut from_other, &mut to_one, limit));
        // An error of one direction is the end of both.
        tokio::select! {
            ended = &mut there => if ended.is_ok() { let _ = timeout(AFTERWARDS, back).await; },
            ended = &mut back => if ended.is_ok() { let _ = timeout(AFTERWARDS, there).await; },
        }
    }
    let _ = timeout(AFTERWARDS, to_one.shutdown()).await;
    let _ = timeout(AFTERWARDS, to_other.shutdown()).await;
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    limit: Option<NonZeroU64>,
) -> io::Result<()> {
    let most = limit.map_or(BUFFER as u64, |limit| (limit.get() / PIECES).clamp(1, BUFFER as u64));
    let mut buffer = vec![0; usize::try_from(most).unwrap_or(BUFFER)];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
        if let Some(limit) = limit {
            sleep(Duration::from_secs_f64(length as f64 / limit.get() as f64)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_silent_side_does_not_keep_the_other() {
        let (client, near) = duplex(1024);
        let (far, _silent) = duplex(1024);
        let began = Instant::now();
        let tunnel = tokio::spawn(copy_both_ways(near, far, None));
        drop(client);
        tunnel.await.expect("ends");
        assert!(began.elapsed() <= 10 * AFTERWARDS);
    }
}
