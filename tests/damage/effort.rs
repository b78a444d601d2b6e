//! How much is done: what fits into every run, or all of it when the environment asks for it.

use std::sync::LazyLock;

/// Whether every case is to be done the thorough way: `SHARESTATE_DAMAGE=all`.
pub fn all_cases() -> bool {
    static ALL: LazyLock<bool> =
        LazyLock::new(|| std::env::var("SHARESTATE_DAMAGE").is_ok_and(|effort| effort == "all"));
    *ALL
}

/// How many random damages to try: `SHARESTATE_DAMAGE_RANDOM`, or so many.
pub fn random_cases(usual: usize) -> usize {
    let wanted = std::env::var("SHARESTATE_DAMAGE_RANDOM");
    wanted.map_or(usual, |wanted| wanted.parse().expect("SHARESTATE_DAMAGE_RANDOM is a number"))
}

/// Random numbers (splitmix64) that a seed decides.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).expect("below a usize")
    }

    /// A byte that is not `good`.
    pub fn other_byte(&mut self, good: u8) -> u8 {
        good ^ (1 + u8::try_from(self.below(255)).expect("a byte"))
    }
}
