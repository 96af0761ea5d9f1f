//! Divides the server's seats among priority levels: nominally by their shares, and at each time by their demand, within the
//! bounds of what they lend and borrow. All levels between their bounds get the same multiple of what they want.

use super::demand::Smoothed;

/// The least that a level is taken to want.
const LEAST_TARGET: f64 = 0.001;
/// Enough halvings of an interval to reach neighbouring numbers.
const HALVINGS: usize = 200;

/// The settings about seats in the spec of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub nominal: u32,
    pub lendable_percent: u32,
    /// `None` is no limit.
    pub borrowing_percent: Option<u32>,
}

/// The bounds of a level's seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub nominal: usize,
    pub least: usize,
    pub most: usize,
}

impl Limits {
    /// `all_shares` are those of all levels together.
    pub fn of(shares: Shares, all_shares: u64, server: usize) -> Self {
        let share = server as f64 * f64::from(shares.nominal) / all_shares.max(1) as f64;
        let nominal = share.ceil() as usize;
        let part = |percent: u32| (nominal as f64 * f64::from(percent) / 100.0).round() as usize;
        Self {
            nominal,
            least: nominal.saturating_sub(part(shares.lendable_percent)),
            most: nominal + shares.borrowing_percent.map_or(server, part),
        }
    }

    /// The seats of a level that was not there before.
    pub fn first(self) -> usize {
        self.nominal - (self.nominal - self.least) / 2
    }
}

/// A level when seats are divided anew.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub limits: Limits,
    pub demand: Smoothed,
    pub is_exempt: bool,
}

impl Claim {
    /// The seats that a level gets in any case, as long as there are enough.
    fn least(&self) -> usize {
        let Limits { nominal, least, .. } = self.limits;
        let wanted = if self.is_exempt { self.demand.high } else { self.demand.high.min(nominal) };
        least.max(wanted)
    }
}

/// The result of a division.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The seats of each level from now on.
    pub seats: Vec<usize>,
    /// The multiple of what they want that levels between their bounds get, if there are enough seats for that.
    pub fair: Option<f64>,
}

/// Divides the seats among levels.
pub fn divide(claims: &[Claim]) -> Division {
    let all: usize = claims.iter().map(|claim| claim.limits.nominal).sum();
    let exempt: usize = claims.iter().filter(|claim| claim.is_exempt).map(Claim::least).sum();
    let limited = || claims.iter().filter(|claim| !claim.is_exempt);
    let remaining = all.saturating_sub(exempt);
    let lower: usize = limited().map(|claim| claim.limits.least).sum();
    let wanted: usize = limited().map(Claim::least).sum();
    let fair = (remaining > wanted).then(|| fair_share(&limited().copied().collect::<Vec<_>>(), all));
    let seats = claims
        .iter()
        .map(|claim| {
            if claim.is_exempt {
                return claim.least();
            }
            let least = claim.limits.least;
            match fair {
                Some(share) => claim.at(share).round() as usize,
                None if remaining <= lower => least,
                None => {
                    let part = (remaining - lower) as f64 / (wanted - lower) as f64;
                    least + ((claim.least() - least) as f64 * part).round() as usize
                }
            }
        })
        .collect();
    Division { seats, fair }
}

impl Claim {
    /// The seats of the level if each level gets this multiple of what it wants, within its bounds.
    fn at(&self, share: f64) -> f64 {
        let (least, most) = (self.least() as f64, self.limits.most as f64);
        (share * self.target()).clamp(least, most.max(least))
    }

    /// The seats that the level wants.
    pub fn target(&self) -> f64 {
        self.demand.value.max(self.least() as f64).max(LEAST_TARGET)
    }
}

/// The share at which the seats of all levels add up to `all`, as far as their bounds permit.
fn fair_share(claims: &[Claim], all: usize) -> f64 {
    let sum = |share: f64| claims.iter().map(|claim| claim.at(share)).sum::<f64>();
    let upper = |claim: &Claim| claim.limits.most as f64 / claim.target();
    let (mut low, mut high) = (0.0, claims.iter().map(upper).fold(1.0, f64::max));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if sum(middle) < all as f64 { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(nominal: usize, least: usize, most: usize) -> Limits {
        Limits { nominal, least, most }
    }

    fn claim(limits: Limits, high: usize, value: f64) -> Claim {
        Claim { limits, demand: Smoothed { high, value }, is_exempt: false }
    }

    #[test]
    fn shares_of_a_fresh_server() {
        // Shares: exempt 0, catch-all 5, global-default 20, leader-election 10, node-high 40, system 30, workload-high 40,
        // workload-low 100.
        let of = |nominal, lendable_percent| {
            Limits::of(Shares { nominal, lendable_percent, borrowing_percent: None }, 245, 600)
        };
        assert_eq!(of(0, 0), limits(0, 0, 600));
        assert_eq!(of(5, 0), limits(13, 13, 613));
        assert_eq!(of(20, 50), limits(49, 24, 649));
        assert_eq!(of(100, 90), limits(245, 24, 845));
        assert_eq!(of(40, 25), limits(98, 73, 698));
        let bounded =
            Limits::of(Shares { nominal: 1, lendable_percent: 0, borrowing_percent: Some(50) }, 1, 10);
        assert_eq!(bounded, limits(10, 10, 15));
    }

    #[test]
    fn seats_go_where_they_are_wanted() {
        let idle = claim(limits(100, 10, 700), 0, 0.0);
        let busy = claim(limits(100, 50, 700), 300, 300.0);
        let seats = divide(&[idle, busy]).seats;
        assert_eq!(seats, [10, 190]);
        let other = divide(&[idle, idle]).seats;
        assert_eq!(other, [100, 100]);
    }

    #[test]
    fn equal_wants_get_equal_parts() {
        let one = claim(limits(100, 20, 700), 50, 80.0);
        let two = claim(limits(100, 20, 700), 50, 160.0);
        let seats = divide(&[one, two]).seats;
        assert_eq!(seats, [67, 133]);
    }

    #[test]
    fn exempt_levels_take_what_they_use() {
        let exempt = Claim { is_exempt: true, ..claim(limits(0, 0, 600), 150, 150.0) };
        let one = claim(limits(100, 50, 700), 100, 100.0);
        let two = claim(limits(100, 20, 700), 100, 100.0);
        // 50 seats remain, fewer than both have to keep.
        assert_eq!(divide(&[exempt, one, two]), Division { seats: vec![150, 50, 20], fair: None });
        let exempt = Claim { demand: Smoothed { high: 65, value: 65.0 }, ..exempt };
        // 135 remain: 70 must stay, and half of the rest of what is wanted is there.
        assert_eq!(divide(&[exempt, one, two]).seats, [65, 75, 60]);
    }
}
