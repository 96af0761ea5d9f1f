//! A proxy that makes PostgreSQL far away: bytes arrive half a round trip later, in both directions. It has threads of its
//! own, since the timers of the runtime count in milliseconds.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;

/// The URL of the same database, `round_trip` farther away.
pub fn between(url: &str, round_trip: Duration) -> String {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let target = match options.get_socket() {
        Some(socket) => Target::Unix(socket.join(format!(".s.PGSQL.{}", options.get_port()))),
        None => Target::Tcp(options.get_host().to_owned(), options.get_port()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    spawn(move || {
        for client in listener.incoming().flatten() {
            target.connect(client, round_trip / 2).expect("the database");
        }
    });
    let database = options.get_database().unwrap_or("postgres");
    format!("postgres://{}@127.0.0.1:{port}/{database}?sslmode=disable", options.get_username())
}

enum Target {
    Tcp(String, u16),
    Unix(PathBuf),
}

impl Target {
    fn connect(&self, client: TcpStream, delay: Duration) -> Result<()> {
        client.set_nodelay(true)?;
        let to_client = client.try_clone()?;
        match self {
            Self::Tcp(host, port) => {
                let server = TcpStream::connect((host.as_str(), *port))?;
                server.set_nodelay(true)?;
                let end = server.try_clone()?;
                carry(client, server.try_clone()?, delay, move || drop(end.shutdown(Shutdown::Both)));
                let end = to_client.try_clone()?;
                carry(server, to_client, delay, move || drop(end.shutdown(Shutdown::Both)));
            }
            Self::Unix(path) => {
                let server = UnixStream::connect(path)?;
                let end = server.try_clone()?;
                carry(client, server.try_clone()?, delay, move || drop(end.shutdown(Shutdown::Both)));
                let end = to_client.try_clone()?;
                carry(server, to_client, delay, move || drop(end.shutdown(Shutdown::Both)));
            }
        }
        Ok(())
    }
}

/// Carries bytes in one direction. Those that are under way do not hold up those that follow.
fn carry(
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    delay: Duration,
    end: impl FnOnce() + Send + 'static,
) {
    let (sender, receiver) = channel();
    spawn(move || take(from, delay, &sender));
    spawn(move || {
        let _ = deliver(to, &receiver);
        end();
    });
}

fn take(mut from: impl Read, delay: Duration, sender: &Sender<(Instant, Vec<u8>)>) {
    let mut buffer = vec![0; 256 * 1024];
    while let Ok(length) = from.read(&mut buffer) {
        let due = Instant::now() + delay;
        if length == 0 || sender.send((due, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

fn deliver(mut to: impl Write, receiver: &Receiver<(Instant, Vec<u8>)>) -> Result<()> {
    while let Ok((due, bytes)) = receiver.recv() {
        sleep(due.saturating_duration_since(Instant::now()));
        to.write_all(&bytes)?;
    }
    Ok(())
}
