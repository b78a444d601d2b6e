//! Kafka's share-group state log: batches, records, replay, export, and what a real broker wrote.
#![cfg(feature = "kafka")]

mod batches;
mod compression;
mod export;
mod fixtures;
mod fuzz;
mod records;
mod replay;
mod segment;
mod states;
mod vectors;
