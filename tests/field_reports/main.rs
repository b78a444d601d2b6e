//! What users of other stores ran into, as tests of this one: public bug reports whose case no other
//! suite here holds. `docs/field-reports.md` says for every report which test takes it; a test of
//! this suite compares that page with the sources.
#![cfg(feature = "testing")]

mod bounded;
mod concurrent;
#[cfg(feature = "rocksdb")]
mod copied;
mod disk;
mod isolated;
mod logged;
mod names;
mod table;

#[path = "../support/mod.rs"]
mod support;
