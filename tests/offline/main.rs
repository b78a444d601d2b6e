//! Offline care: repair, salvage, backup, restore. On the simulated disk every call is a place to
//! crash; the rest runs the command over real files.

#[cfg(feature = "testing")]
mod crash;
#[cfg(feature = "testing")]
mod cut;
#[cfg(feature = "testing")]
mod files;
#[cfg(feature = "testing")]
mod salvage;
#[cfg(feature = "testing")]
mod sim;
#[cfg(feature = "testing")]
mod sim_backup;

#[cfg(all(feature = "cli", feature = "rocksdb"))]
#[path = "../cli/mod.rs"]
mod cli;
#[cfg(all(feature = "cli", feature = "rocksdb"))]
mod cli_backup;
#[cfg(all(feature = "cli", feature = "rocksdb"))]
mod cli_refusals;
#[cfg(all(feature = "cli", feature = "rocksdb"))]
mod cli_repair;
#[cfg(feature = "rocksdb")]
mod live_backup;
#[path = "../support/mod.rs"]
mod support;
