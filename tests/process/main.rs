//! Real processes, real limits, real mounts: what a simulated disk cannot show.
//!
//! Every child is this program again, or the `sharestate` command, and dies with its parent. Where
//! the machine lacks a means (user namespaces, mount, setpriv, a C compiler), the test fails and
//! names it.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod allocator;
mod child;
mod descriptors;
mod file_size;
mod full_disk;
mod memory;
mod permission;
mod race;
mod read_only;
mod snapshot_writes;
mod torture;
mod work;

#[path = "../support/mod.rs"]
mod support;
