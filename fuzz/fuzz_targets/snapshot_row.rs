//! See `src/bodies/snapshot_row.rs`.
#![no_main]

use sharestate_fuzz::{bodies::snapshot_row, bounded};

libfuzzer_sys::fuzz_target!(|input: &[u8]| bounded::run(snapshot_row::run, input));
