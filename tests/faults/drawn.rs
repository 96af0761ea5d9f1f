//! Which faults there are, and which one comes next.

use rand::RngExt;
use rand::rngs::StdRng;

use super::disks::DiskFault;
use super::failovers::Replication;
use super::proxy::Direction;
use super::replicas::Database;

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Kill,
    Terminate,
    /// SIGSTOP and SIGCONT
    Pause,
    /// Trouble on one of a server's two connections.
    Link(Side, Trouble),
    DatabaseKilled,
    DatabaseStoppedImmediately,
    DatabaseRestarted,
    /// Another session holds the lock that every write needs.
    ClockLocked,
    /// The registrations of all servers are removed, as one server removes another that it takes for dead.
    Unregistered,
    /// Statements of more than a few milliseconds are cancelled. (rowplane's sessions have no `statement_timeout`.)
    StatementsCancelled,
    /// A standby takes over.
    Failover(Replication),
    /// A migration of stored objects is requested.
    Migrate,
    /// No file of the server may grow beyond a limit.
    DiskFull,
    /// Calls on the files of SQLite's database meet a disk in trouble.
    Disk(DiskFault),
    /// Calls of PostgreSQL's processes meet a disk in trouble.
    DatabaseDisk(DiskFault),
    /// The server's wall clock jumps, ahead or back.
    ClockJumps,
    /// The server gets little memory beyond that which it has, or none.
    MemoryFull,
    /// The server ends, and comes back as the other program of the run.
    OtherRelease,
    /// The server gets no file and no connection beyond those that it has.
    DescriptorsFull,
    /// All connections of servers are ended, and others take the places that the database has for connections.
    ConnectionsFull,
}

#[derive(Clone, Copy, Debug)]
pub enum Side {
    Front,
    Back,
}

#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    Cut,
    /// The peer vanishes silently.
    Lost,
    /// The peer vanishes silently when a call to the database lacks nothing but its end.
    LostInCalls,
    Held(Direction),
    HeldBothWays,
    Delayed,
    /// A tenth of all chunks comes late, as with a network that loses a tenth of its packets.
    Lossy,
}

/// Any fault, or two times of five the one that is to come often.
pub fn draw(random: &mut StdRng, database: &Database) -> Fault {
    let fault = draw_any(random, database);
    match std::env::var("ROWPLANE_FAULTS_OFTEN") {
        Ok(often) if random.random_bool(0.4) => {
            let mut many = (0..10_000).map(|_| draw_any(random, database));
            many.find(|fault| format!("{fault:?}") == often).expect("a fault of this name")
        }
        _ => fault,
    }
}

fn draw_any(random: &mut StdRng, database: &Database) -> Fault {
    let trouble = match random.random_range(0..8) {
        0..2 => Trouble::Cut,
        2 => Trouble::Lost,
        3 => Trouble::Held(Direction::Up),
        4 => Trouble::Held(Direction::Down),
        5 => Trouble::HeldBothWays,
        6 => Trouble::Lossy,
        _ => Trouble::Delayed,
    };
    let disk = match random.random_range(0..3) {
        0 => DiskFault::Full,
        1 => DiskFault::Failing,
        _ => DiskFault::Slow,
    };
    match (database, random.random_range(0..32)) {
        (_, 0..3) => Fault::Kill,
        (_, 3) => Fault::Terminate,
        (_, 4..7) => Fault::Pause,
        (_, 7..10) => Fault::Link(Side::Front, trouble),
        (_, 21..23) => Fault::Migrate,
        (_, 23..25) => Fault::DescriptorsFull,
        (_, 27) => Fault::ClockJumps,
        (_, 28) => Fault::MemoryFull,
        (Database::Sqlite, 16..21 | 29..32) => Fault::Disk(disk),
        (Database::Postgres(_), 29..32) => Fault::DatabaseDisk(disk),
        (Database::Sqlite, _) => Fault::DiskFull,
        (Database::Postgres(_), 10) => Fault::Link(Side::Back, Trouble::LostInCalls),
        (Database::Postgres(_), 11..15) => Fault::Link(Side::Back, trouble),
        (Database::Postgres(_), 15) => Fault::DatabaseKilled,
        (Database::Postgres(_), 16) => Fault::DatabaseStoppedImmediately,
        (Database::Postgres(_), 17) => Fault::DatabaseRestarted,
        (Database::Postgres(_), 18) => Fault::ClockLocked,
        (Database::Postgres(_), 19) => match random.random_bool(0.5) {
            true => Fault::Failover(Replication::Synchronous),
            false => Fault::Failover(Replication::Stalled),
        },
        (Database::Postgres(_), 25) => Fault::Unregistered,
        (Database::Postgres(_), 26) => Fault::ConnectionsFull,
        (Database::Postgres(_), _) => Fault::StatementsCancelled,
    }
}
