//! Which programs the servers of a run are. Beside this build's program there may be that of an earlier release: then a fault
//! brings a server back as the other one, so that servers of both write to one store.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::chaos::Counts;
use super::history::Kind;
use super::server::Server;

/// A server program.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    help: Arc<str>,
}

impl Program {
    fn at(path: PathBuf) -> Self {
        let help = Command::new(&path).arg("--help").output().expect("a server program");
        Self { path, help: String::from_utf8(help.stdout).expect("UTF-8").into() }
    }

    /// That of this build, or the one that `ROWPLANE_FAULTS_SERVER` names.
    pub fn newer() -> Self {
        let other = std::env::var_os("ROWPLANE_FAULTS_SERVER");
        Self::at(other.map_or_else(|| env!("CARGO_BIN_EXE_rowplane").into(), PathBuf::from))
    }

    pub fn knows(&self, argument: &str) -> bool {
        self.help.contains(argument.split('=').next().expect("a flag"))
    }
}

/// What becomes of servers that are to come back as another release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ways {
    /// They are upgraded and rolled back.
    Both,
    /// They are upgraded. The older program does not start on the tables of the newer one, so once one server is upgraded, each
    /// that is started is of the newer program; those of the older one that run go on.
    Upgrade,
}

/// The programs of a run.
pub struct Releases {
    newer: Program,
    older: Option<Program>,
    ways: Ways,
    narrow: bool,
    is_upgraded: AtomicBool,
    upgrades: AtomicUsize,
    rollbacks: AtomicUsize,
}

impl Releases {
    /// As `ROWPLANE_FAULTS_OLDER`, `ROWPLANE_FAULTS_ONE_WAY` and `ROWPLANE_FAULTS_NARROW` say.
    pub fn chosen() -> Self {
        let is_set = |variable| std::env::var_os(variable).is_some();
        Self {
            newer: Program::newer(),
            older: std::env::var_os("ROWPLANE_FAULTS_OLDER").map(|path| Program::at(path.into())),
            ways: if is_set("ROWPLANE_FAULTS_ONE_WAY") { Ways::Upgrade } else { Ways::Both },
            narrow: is_set("ROWPLANE_FAULTS_NARROW"),
            is_upgraded: AtomicBool::new(false),
            upgrades: AtomicUsize::new(0),
            rollbacks: AtomicUsize::new(0),
        }
    }

    /// Whether there are two programs.
    pub fn are_two(&self) -> bool {
        self.older.is_some()
    }

    /// Whether the load is narrowed to what the first releases had: built-in kinds, and nobody but an administrator.
    pub fn are_narrow(&self) -> bool {
        self.narrow
    }

    /// The kinds of the load.
    pub fn kinds(&self) -> &'static [Kind] {
        match self.narrow {
            true => &Kind::BUILT_IN,
            false => &Kind::ALL,
        }
    }

    /// What a server is at the beginning of a run. Draws nothing where there is one program.
    pub fn first(&self, random: &mut StdRng) -> &Program {
        match (&self.older, self.ways) {
            (None, _) => &self.newer,
            (Some(older), Ways::Upgrade) => older,
            (Some(older), Ways::Both) => {
                if random.random_bool(0.5) {
                    older
                } else {
                    &self.newer
                }
            }
        }
    }

    /// Lets the next process of a server be of the other program. It must not run now.
    pub fn turn(&self, servers: &[Server], server: usize) {
        let Some(older) = &self.older else { return };
        let installation = &servers[server].installation;
        let is_older = installation.program().path == older.path;
        let (next, count) = match is_older {
            true => (&self.newer, &self.upgrades),
            false if self.ways == Ways::Upgrade => return,
            false => (older, &self.rollbacks),
        };
        count.fetch_add(1, Ordering::Relaxed);
        installation.be(next.clone());
        if self.ways == Ways::Upgrade && !self.is_upgraded.swap(true, Ordering::Relaxed) {
            for server in servers {
                server.installation.be(self.newer.clone());
            }
        }
    }

    /// How often servers were turned, if there are two programs.
    pub fn turns(&self) -> Counts {
        let count = |name: &str, turns: &AtomicUsize| (name.to_owned(), turns.load(Ordering::Relaxed));
        let turns = [count("Upgraded", &self.upgrades), count("RolledBack", &self.rollbacks)];
        turns.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}
