//! A TCP proxy whose connections can be delayed, held, lost or cut, in either direction.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The address to which connections lead.
#[derive(Clone, Debug)]
pub enum Target {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// How the proxy treats bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    #[default]
    Open,
    Delayed(Duration),
    /// Holds one of ten chunks, and what follows it in its direction, until it has been sent again: like a network that
    /// drops a tenth of its packets. TCP tries again after 200 ms, and waits twice as long each time that is lost, too.
    Lossy,
    /// Holds them, like a network that drops packets: they arrive later.
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the side that has connected.
    Up,
    Down,
}

/// Accepts connections until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    opened: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Debug)]
struct Weather {
    target: Target,
    up: Flow,
    down: Flow,
    /// Connections with smaller numbers must end.
    cut_before: u64,
    /// Connections with smaller numbers transport nothing any more, without an error.
    lost_before: u64,
    /// A connection is lost before it transports PostgreSQL's Sync message, the end of a call.
    without_sync: bool,
}

/// PostgreSQL's Sync message.
const SYNC: &[u8] = b"S\0\0\0\x04";

impl Proxy {
    pub async fn start(target: Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let weather = Weather {
            target,
            up: Flow::Open,
            down: Flow::Open,
            cut_before: 0,
            lost_before: 0,
            without_sync: false,
        };
        let weather = watch::Sender::new(weather);
        let opened = Arc::new(AtomicU64::new(0));
        let accepting = tokio::spawn(accept(listener, weather.clone(), opened.clone()));
        Self { address, weather, opened, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set_flow(&self, direction: Direction, flow: Flow) {
        self.weather.send_modify(|weather| match direction {
            Direction::Up => weather.up = flow,
            Direction::Down => weather.down = flow,
        });
    }

    /// Ends all present connections.
    pub fn cut(&self) {
        let next = self.opened.load(Ordering::SeqCst);
        self.weather.send_modify(|weather| weather.cut_before = next);
    }

    /// All present connections stop to transport bytes, but do not end: the peer has vanished silently.
    pub fn lose(&self) {
        let next = self.opened.load(Ordering::SeqCst);
        self.weather.send_modify(|weather| {
            weather.lost_before = next;
            weather.without_sync = false;
        });
    }

    /// From now on the network is lost in the middle of every call to PostgreSQL: everything has arrived but its end. Ended
    /// by [`Proxy::lose`].
    pub fn lose_in_calls(&self) {
        self.weather.send_modify(|weather| weather.without_sync = true);
    }

    /// New connections lead to another target; of the present ones, the older half ends, and the others go on.
    pub fn retarget_some(&self, target: Target) {
        let next = self.opened.load(Ordering::SeqCst);
        self.weather.send_modify(|weather| {
            weather.target = target;
            weather.cut_before = next.midpoint(weather.cut_before);
        });
    }

    /// New connections lead to another target; present ones end.
    pub fn retarget(&self, target: Target) {
        self.weather.send_modify(|weather| weather.target = target);
        self.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, weather: watch::Sender<Weather>, opened: Arc<AtomicU64>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let number = opened.fetch_add(1, Ordering::SeqCst);
        let weather = weather.subscribe();
        tokio::spawn(async move {
            // If one side ends or fails, or the connection is cut, both sides end.
            let _ = carry(client, number, weather).await;
        });
    }
}

async fn carry(client: TcpStream, number: u64, weather: watch::Receiver<Weather>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let target = weather.borrow().target.clone();
    match target {
        Target::Tcp(address) => {
            let server = TcpStream::connect(address).await?;
            server.set_nodelay(true)?;
            both(client.into_split(), server.into_split(), number, weather).await
        }
        Target::Unix(path) => {
            let server = UnixStream::connect(path).await?;
            both(client.into_split(), server.into_split(), number, weather).await
        }
    }
}

async fn both<R1, W1, R2, W2>(
    client: (R1, W1),
    server: (R2, W2),
    number: u64,
    weather: watch::Receiver<Weather>,
) -> io::Result<()>
where
    R1: AsyncRead + Unpin,
    W1: AsyncWrite + Unpin,
    R2: AsyncRead + Unpin,
    W2: AsyncWrite + Unpin,
{
    let mut cut = weather.clone();
    tokio::select! {
        ended = pump(client.0, server.1, number, Direction::Up, weather.clone()) => ended,
        ended = pump(server.0, client.1, number, Direction::Down, weather) => ended,
        _ = cut.wait_for(|weather| number < weather.cut_before) => Ok(()),
    }
}

/// Transports bytes in one direction until their end.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    number: u64,
    direction: Direction,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        // The end of a held direction is held, too.
        let passes =
            |weather: &Weather| number >= weather.lost_before && weather.flow(direction) != Flow::Held;
        let flow = match weather.wait_for(passes).await {
            Ok(weather) => weather.flow(direction),
            Err(_) => return Ok(()),
        };
        match flow {
            Flow::Delayed(delay) => tokio::time::sleep(delay).await,
            Flow::Lossy => tokio::time::sleep(retransmission()).await,
            Flow::Open | Flow::Held => {}
        }
        if length == 0 {
            return Ok(());
        }
        let cut_off = weather.borrow().without_sync && direction == Direction::Up;
        match buffer[..length].strip_suffix(SYNC).filter(|_| cut_off) {
            Some(rest) => {
                to.write_all(rest).await?;
                return std::future::pending().await;
            }
            None => to.write_all(&buffer[..length]).await?,
        }
    }
}

/// How long a packet takes to arrive of which each attempt is lost once in ten times.
fn retransmission() -> Duration {
    let (mut late, mut timeout) = (Duration::ZERO, Duration::from_millis(200));
    while rand::random_ratio(1, 10) {
        late += timeout;
        timeout *= 2;
    }
    late
}

impl Weather {
    fn flow(&self, direction: Direction) -> Flow {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }
}
