//! Priority and Fairness: which requests may run when not all can.
//!
//! A FlowSchema says to which priority level a request belongs. A level has a part of the server's seats, which it lends to
//! others while it does not need them. Requests for which there is no seat wait in queues, so that no flow can hold up all
//! others, or are refused.

mod allocation;
mod dealer;
mod demand;
mod dump;
mod flow;
mod level;
mod occupied;
mod queue_set;
mod retry_after;
mod waiter;
mod watches;
mod width;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::time::Instant;

use self::allocation::{Claim, Division, Limits, divide};
use self::dealer::flow_hash;
use self::flow::Flow;
use self::level::{Level, LevelSpec};
use self::occupied::Occupied;
use self::queue_set::Discipline;
use self::waiter::Waiter;
use self::watches::Watches;
use crate::auth::authorizer::Attributes;
use crate::kinds::flowcontrol::bootstrap;
use crate::metrics::{FlowMetrics, Metrics};
use crate::runtime::Runtime;
use crate::tree::Map;
use crate::wall_clock::WallClock;

pub use self::level::{Refused, Seat};
pub use self::watches::Watching;
pub use self::width::{Listing, Sizes, Width};

/// The time between two divisions of the seats by demand.
pub const DIVISION_PERIOD: Duration = Duration::from_secs(10);
const CATCH_ALL: &str = "catch-all";

/// The levels and flows of now.
pub struct FlowControl {
    /// The seats of all levels together.
    seats: usize,
    flows: ArcSwap<Vec<Arc<FlowOfLevel>>>,
    levels: Mutex<BTreeMap<Arc<str>, LevelState>>,
    metrics: Arc<Metrics>,
    clock: WallClock,
    watches: Arc<Watches>,
    /// How many objects a resource has, and how large they are. Known once the objects are.
    sizes: OnceLock<Box<Sizes>>,
}

/// A FlowSchema and the level that it refers to.
pub struct FlowOfLevel {
    flow: Flow,
    level: Arc<Level>,
    /// The uids of the FlowSchema and the level, as every answer bears them.
    uids: [Bytes; 2],
    is_exempt: bool,
    metrics: FlowMetrics,
    /// Shared by what the FlowSchema was before and after a change of its object.
    occupied: Arc<Occupied>,
}

struct LevelState {
    level: Arc<Level>,
    spec: LevelSpec,
    limits: Limits,
    /// Its object is gone, and it ends with its last request.
    quiescing: bool,
}

impl FlowControl {
    /// Makes a flow control with the mandatory levels and flows alone.
    pub fn new(seats: usize, runtime: &Runtime) -> Self {
        let this = Self {
            seats,
            flows: ArcSwap::default(),
            levels: Mutex::default(),
            metrics: runtime.metrics.clone(),
            clock: runtime.clock.clone(),
            watches: Arc::default(),
            sizes: OnceLock::new(),
        };
        this.configure(&[], &[]);
        this
    }

    /// Says where sizes of lists are known from.
    pub fn estimate_by(&self, sizes: Box<Sizes>) {
        let _ = self.sizes.set(sizes);
    }

    /// Takes over what the objects say: PriorityLevelConfigurations and FlowSchemas.
    pub fn configure(&self, levels: &[Map], flows: &[Map]) {
        let mut specs: Vec<LevelSpec> = levels.iter().filter_map(LevelSpec::read).collect();
        let imagined = bootstrap::levels().filter(|level| level.mandatory);
        for level in imagined.filter_map(|level| LevelSpec::read(&level.object)) {
            if specs.iter().all(|spec| spec.name != level.name) {
                specs.push(level);
            }
        }
        let mut states = self.levels();
        self.adopt(&mut states, specs.clone());
        let mut flows: Vec<Flow> = flows.iter().map(Flow::read).collect();
        flows.retain(|flow| specs.iter().any(|spec| *spec.name == *flow.level));
        for flow in bootstrap::flows().filter(|flow| flow.mandatory).map(|flow| Flow::read(&flow.object)) {
            if flows.iter().all(|known| known.name != flow.name) {
                flows.push(flow);
            }
        }
        flows.sort_by(|one, other| (one.precedence, &one.name).cmp(&(other.precedence, &other.name)));
        let flows: Vec<_> = flows.into_iter().filter_map(|flow| self.flow_of_level(flow, &states)).collect();
        for gone in self.flows.swap(Arc::new(flows)).iter() {
            if self.flow_like(&gone.flow).is_none() {
                Occupied::default().observe(&gone.metrics);
            }
        }
    }

    /// The flow of this name and level that is there now.
    fn flow_like(&self, flow: &Flow) -> Option<Arc<FlowOfLevel>> {
        let flows = self.flows.load();
        flows.iter().find(|known| known.flow.name == flow.name && known.flow.level == flow.level).cloned()
    }

    fn flow_of_level(&self, flow: Flow, states: &BTreeMap<Arc<str>, LevelState>) -> Option<Arc<FlowOfLevel>> {
        let LevelState { level, spec, .. } = states.get(flow.level.as_str())?;
        Some(Arc::new(FlowOfLevel {
            level: level.clone(),
            uids: [&flow.uid, &spec.uid].map(|uid| Bytes::copy_from_slice(uid.as_bytes())),
            is_exempt: spec.discipline == Discipline::Exempt,
            metrics: self.metrics.flow(&spec.name, &flow.name),
            occupied: self.flow_like(&flow).map(|known| known.occupied.clone()).unwrap_or_default(),
            flow,
        }))
    }

    /// Adopts the specs. Levels without an object stay as long as they have requests.
    fn adopt(&self, states: &mut BTreeMap<Arc<str>, LevelState>, specs: Vec<LevelSpec>) {
        states.retain(|name, state| specs.iter().any(|spec| spec.name == *name) || !state.level.is_idle());
        let kept = states.values().map(|state| &state.spec);
        let kept = kept.filter(|old| specs.iter().all(|spec| spec.name != old.name)).cloned();
        let known = specs.len();
        let specs: Vec<LevelSpec> = specs.iter().cloned().chain(kept.collect::<Vec<_>>()).collect();
        let all_shares = specs.iter().map(|spec| u64::from(spec.shares.nominal)).sum();
        for (index, spec) in specs.into_iter().enumerate() {
            let quiescing = index >= known;
            let limits = Limits::of(spec.shares, all_shares, self.seats);
            let level = match states.get(&spec.name) {
                Some(state) => {
                    state.level.configure(&spec, limits);
                    state.level.clone()
                }
                None => {
                    Arc::new(Level::new(&spec, limits, self.metrics.level(&spec.name), self.clock.clone()))
                }
            };
            states.insert(spec.name.clone(), LevelState { level, spec, limits, quiescing });
        }
        self.divide_among(states);
    }

    /// Divides the seats anew by what the levels have needed.
    pub fn divide(&self) {
        self.divide_among(&self.levels());
    }

    /// Brings gauges up to date.
    pub fn observe(&self) {
        self.flows.load().iter().for_each(|flow| flow.occupied.observe(&flow.metrics));
    }

    /// The flow that a request belongs to. There is always the flow `catch-all`.
    pub fn classify(&self, request: &Attributes<'_>) -> Option<Arc<FlowOfLevel>> {
        let flows = self.flows.load();
        let found = flows.iter().find(|entry| entry.flow.matches(request));
        found.or_else(|| flows.iter().find(|entry| &*entry.flow.name == CATCH_ALL)).cloned()
    }

    /// Counts a watch as long as it lives, since writes of what it sees are work.
    pub fn watching(&self, request: &Attributes<'_>) -> Watching {
        self.watches.clone().register(request)
    }

    /// How many seats a request needs.
    pub fn width(
        &self,
        request: &Attributes<'_>,
        listing: impl FnOnce() -> Listing,
        flow: &FlowOfLevel,
    ) -> Width {
        match request.verb {
            "list" | "watch" if !request.resource.is_empty() => {
                let most = flow.level.widest(width::LARGEST_LIST);
                width::list(request, &listing(), self.sizes.get().map(|sizes| &**sizes), most)
            }
            "create" | "update" | "patch" | "delete" if !request.resource.is_empty() => {
                let watches = self.watches.concerned(request);
                flow.metrics.concerned(watches);
                width::write(request, watches, flow.level.widest(width::WIDEST_WRITE))
            }
            _ => Width::ONE,
        }
    }

    fn divide_among(&self, states: &BTreeMap<Arc<str>, LevelState>) {
        let claims: Vec<Claim> = states
            .values()
            .map(|state| Claim {
                limits: state.limits,
                demand: state.level.demand(),
                is_exempt: state.spec.discipline == Discipline::Exempt,
            })
            .collect();
        let Division { seats, fair } = divide(&claims);
        for ((state, claim), seats) in states.values().zip(&claims).zip(seats) {
            state.level.set_limit(seats, claim.target());
        }
        self.metrics.seats_divided(fair.unwrap_or_default());
    }

    fn levels(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, LevelState>> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlowOfLevel {
    /// The uids of the FlowSchema and of its level.
    pub fn uids(&self) -> &[Bytes; 2] {
        &self.uids
    }

    pub fn flow_name(&self) -> &str {
        &self.flow.name
    }

    pub fn level_name(&self) -> &str {
        &self.level.name
    }

    /// Whether requests of the flow never wait.
    pub fn is_exempt(&self) -> bool {
        self.is_exempt
    }

    /// Waits for the seats of a request that came at `began`, for this time at most.
    pub async fn enter(
        &self,
        request: &Attributes<'_>,
        path: &str,
        width: Width,
        began: Instant,
        longest: Duration,
    ) -> Result<Seat, Refused> {
        let mut has_waited = false;
        let waiter = || {
            has_waited = true;
            self.waiter(request, path, Duration::ZERO)
        };
        let hash = self.hash(request);
        let entered = self.level.enter(&self.occupied, width, hash, began, longest, waiter).await;
        let waited = if has_waited { began.elapsed() } else { Duration::ZERO };
        let waited = (!self.is_exempt).then_some(waited);
        self.metrics.estimated(width.seats());
        self.metrics.entered(entered.as_ref().err().map(|refused| refused.reason), waited);
        self.timed(entered, request)
    }

    /// The seats, whose duration is noted.
    fn timed(&self, entered: Result<Seat, Refused>, request: &Attributes<'_>) -> Result<Seat, Refused> {
        Ok(entered?.timed(self.metrics.executed(request.verb == "watch")))
    }

    /// Waits for the seats of a request that has [given its own back](Seat::give_back). Metrics count such a request once.
    pub async fn enter_again(
        &self,
        request: &Attributes<'_>,
        path: &str,
        width: Width,
        longest: Duration,
    ) -> Result<Seat, Refused> {
        let waiter = || self.waiter(request, path, Duration::ZERO);
        let (hash, now) = (self.hash(request), Instant::now());
        let entered = self.level.enter(&self.occupied, width, hash, now, longest, waiter).await;
        match &entered {
            Ok(seat) => self.describe(seat, request, path),
            Err(refused) => self.metrics.entered(Some(refused.reason), None),
        }
        self.timed(entered, request)
    }

    /// The number by which the request's flow is dealt its queues.
    fn hash(&self, request: &Attributes<'_>) -> u64 {
        match self.is_exempt {
            true => 0,
            false => flow_hash(&self.flow.name, self.flow.distinguished_by(request)),
        }
    }

    /// Describes a request that runs.
    pub fn describe(&self, seat: &Seat, request: &Attributes<'_>, path: &str) {
        seat.describe(self.waiter(request, path, seat.age()));
    }

    /// The description of a request that came so long ago.
    fn waiter(&self, request: &Attributes<'_>, path: &str, age: Duration) -> Waiter {
        let distinguisher = self.flow.distinguished_by(request);
        Waiter::new(&self.flow.name, distinguisher, request, path, self.level.clock.timestamp() - age)
    }
}

#[cfg(test)]
mod tests;
