//! What each fuzz target does with its input. Plain functions that panic on a finding, so that
//! `tests/fuzz_corpus.rs` replays the corpora through the very same code without a fuzzer.
#![allow(dead_code)] // each user takes its own part

pub mod damage;
pub mod draw;
pub mod entry;
pub mod frame;
#[cfg(feature = "kafka")]
pub mod kafka_import;
pub mod model_ops;
pub mod near;
pub mod segment_dir;
pub mod snapshot_row;
pub mod store_base;

/// A target's body.
pub type Body = fn(&[u8]);

/// Every target that these features allow, by name.
pub fn all() -> Vec<(&'static str, Body)> {
    let targets: [(&'static str, Body); 5] = [
        ("frame", frame::run),
        ("entry", entry::run),
        ("segment_dir", segment_dir::run),
        ("model_ops", model_ops::run),
        ("snapshot_row", snapshot_row::run),
    ];
    #[cfg_attr(not(feature = "kafka"), allow(unused_mut))]
    let mut targets = targets.to_vec();
    #[cfg(feature = "kafka")]
    targets.push(("kafka_import", kafka_import::run));
    targets
}
