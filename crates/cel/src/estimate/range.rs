//! Sizes and costs between a least and a most.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub const fn exactly(value: u64) -> Self {
        Self { min: value, max: value }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// By a factor, rounded up.
    pub fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scaled(value: u64, factor: f64) -> u64 {
    let product = value as f64;
    if product > 0.0 && factor > 0.0 && product > u64::MAX as f64 / factor {
        return u64::MAX;
    }
    // Too large a product becomes the largest number.
    (product * factor).ceil() as u64
}
