//! See `src/bodies/segment_dir.rs`.
#![no_main]

use sharestate_fuzz::{bodies::segment_dir, bounded};

libfuzzer_sys::fuzz_target!(|input: &[u8]| bounded::run_history(segment_dir::run, input));
