//! The log by itself: frames, segments, where it ends, and what damage and crashes do to it.
#![cfg(feature = "testing")]

mod bounds;
mod chain;
mod crash;
mod damage;
mod faults;
mod frame;
mod golden;
mod live;
mod report;
mod salvage;
mod support;
mod tail;
mod write_read;
