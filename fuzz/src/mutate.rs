//! Mutators that make checksums right again after libFuzzer's own mutation, most of the time: raw
//! damage is what checksums are for, and what is behind them must hold without them too.

use libfuzzer_sys::fuzzer_mutate;
use sharestate::log::frame::seal::seal_segment;

/// A log segment.
pub fn segment(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let size = fuzzer_mutate(data, size, max_size);
    match seed % 4 {
        0 => {}
        1 => seal_segment(&mut data[..size], true),
        _ => seal_segment(&mut data[..size], false),
    }
    size
}

/// A segment file of Kafka's.
#[cfg(feature = "kafka")]
pub fn kafka(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let size = fuzzer_mutate(data, size, max_size);
    match seed % 4 {
        0 => {}
        1 => sharestate::kafka_log::seal_batches(&mut data[..size], false),
        _ => sharestate::kafka_log::seal_batches(&mut data[..size], true),
    }
    size
}
