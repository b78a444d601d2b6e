//! See `src/bodies/kafka_import.rs`.
#![no_main]

use sharestate_fuzz::{bodies::kafka_import, bounded, mutate};

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::kafka(data, size, max_size, seed)
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| bounded::run(kafka_import::run, input));
