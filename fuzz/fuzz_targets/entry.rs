//! See `src/bodies/entry.rs`.
#![no_main]

use sharestate_fuzz::{bodies::entry, bounded};

libfuzzer_sys::fuzz_target!(|input: &[u8]| bounded::run(entry::run, input));
