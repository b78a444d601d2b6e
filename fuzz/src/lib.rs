//! The fuzz targets' bodies, what bounds them, and what mutates for them. The targets themselves,
//! in `fuzz_targets/`, only name one of each.

pub mod bodies;
pub mod bounded;
pub mod mutate;

#[path = "../../tests/txn_support/history.rs"]
mod history;
#[path = "../../tests/support/oracle.rs"]
mod oracle;
#[path = "../../tests/txn_support/twin.rs"]
mod twin;
