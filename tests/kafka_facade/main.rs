//! `sharestate::kafka`: the shapes of Kafka's calls over a real store on the simulated disk.
#![cfg(feature = "testing")]

mod calls;
mod catalogue;
#[cfg(feature = "cli")]
mod fixtures;
mod markers;
mod pending;
mod staging;
mod support;
mod trouble;
