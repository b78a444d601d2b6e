//! A small seeded generator (SplitMix64): draws need not be good, only repeatable.

pub struct Rng(u64);

impl Rng {
    /// A generator of its own for every purpose.
    pub fn new(seed: u64, purpose: &[u64]) -> Self {
        let mut rng = Self(seed);
        for part in purpose {
            rng.0 = rng.next() ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        rng
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// As [`below`](Self::below), for offsets.
    pub fn offset(&mut self, bound: u32) -> i64 {
        i64::try_from(self.below(bound.into())).unwrap_or(0)
    }

    /// True in `percent` of 100 draws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
