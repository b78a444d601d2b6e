//! See `src/bodies/model_ops.rs`.
#![no_main]

use sharestate_fuzz::{bodies::model_ops, bounded};

libfuzzer_sys::fuzz_target!(|input: &[u8]| bounded::run_history(model_ops::run, input));
