//! Damage to a whole store: detected and named, or without any effect. Never an empty store, never
//! a panic, never a deletion.
//!
//! The log's frames, the small files and how they fit together are damaged on a simulated disk, with
//! the snapshot in memory; RocksDB's files, and what `verify` says of all of it, in real directories.
//! `SHARESTATE_DAMAGE=all` and `SHARESTATE_DAMAGE_RANDOM=N` ask for more than a sample.
#![cfg(feature = "testing")]

mod bits;
mod effort;
mod history;
mod image;
mod lengths;
mod misplaced;
mod small_files;
mod snapshots;
mod subject;
mod tails;
mod truncation;

#[cfg(all(feature = "rocksdb", feature = "cli"))]
mod agreement;
#[cfg(all(feature = "rocksdb", feature = "cli"))]
mod golden;
#[cfg(all(feature = "rocksdb", feature = "cli"))]
mod real;
#[cfg(all(feature = "rocksdb", feature = "cli"))]
mod rocks;
#[cfg(all(feature = "rocksdb", feature = "cli"))]
#[path = "../support/mod.rs"]
mod support;
