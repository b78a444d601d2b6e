//! The whole store on a simulated disk: crashes, lost and reordered pages, failing calls, full
//! disks, missing and resurrected segments. One topic a module; see `docs/reliability.md` for what
//! each promises.
#![cfg(feature = "testing")]

#[path = "../support/oracle.rs"]
mod oracle;
#[path = "../support/rw1.rs"]
mod rw1;

mod boundaries;
mod clock;
mod faults;
mod full;
mod judged;
mod matrix;
mod names;
mod order;
mod pages;
mod recovery;
mod reference;
#[cfg(feature = "rocksdb")]
mod rocks;
mod scale;
mod segments;
mod transfers;
mod world;
