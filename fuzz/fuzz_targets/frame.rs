//! See `src/bodies/frame.rs`.
#![no_main]

use sharestate_fuzz::{bodies::frame, bounded, mutate};

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::segment(data, size, max_size, seed)
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| bounded::run(frame::run, input));
