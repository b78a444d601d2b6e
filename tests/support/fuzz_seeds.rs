//! What the corpora of `fuzz/` begin from: real segments, entries, rows and Kafka batches, and
//! scripts that use every operation of the targets that read scripts.

use std::path::Path;

use sharestate::codec::{
    encode_partition, encode_partition_key, encode_producer, encode_producer_key,
};
use sharestate::log::frame::decode_frame;
use sharestate::log::frame::seal::claimed_id;

use crate::bodies::store_base::bases;

/// Every seed with its target.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    frames_and_entries(&mut seeds);
    scripts(&mut seeds);
    rows(&mut seeds);
    #[cfg(feature = "kafka")]
    kafka(&mut seeds);
    seeds
}

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn frames_and_entries(seeds: &mut Seeds) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1/wal");
    let golden = [1, 28, 55].map(|lsn| {
        std::fs::read(fixtures.join(sharestate::log::segment_file_name(lsn))).expect("fixture")
    });
    let made = bases().iter().flat_map(|base| base.segments.iter().map(|(_, bytes)| bytes.clone()));
    for segment in golden.into_iter().chain(made) {
        entries_of(&segment, seeds);
        let used = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 9);
        seeds.push(("frame", segment[..used.min(segment.len())].to_vec()));
    }
}

fn entries_of(segment: &[u8], seeds: &mut Seeds) {
    let id = claimed_id(segment).expect("a segment");
    let mut offset = 64;
    while let Ok(frame) = decode_frame(&id, &segment[offset..], offset as u64) {
        for entry in frame.entries() {
            let [low, high] = entry.kind.to_le_bytes();
            seeds.push(("entry", [&[0, low, high, entry.version], entry.body].concat()));
        }
        offset += usize::try_from(frame.frame_bytes()).expect("fits");
    }
}

/// Bytes that depend on nothing but their number (SplitMix64).
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).to_le_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}

fn scripts(seeds: &mut Seeds) {
    for seed in 0..40_u8 {
        let number = u64::from(seed);
        seeds.push(("entry", [&[1, seed], &noise(number, 120)[..]].concat()));
        seeds.push(("snapshot_row", [&[3 + seed % 3], &noise(number, 200)[..]].concat()));
        let mode = [0, 1, 2, 3, 14, 15][usize::from(seed % 6)];
        seeds.push(("model_ops", [&[mode], &noise(number, 400)[..]].concat()));
    }
    for base in 0..3 {
        seeds.push(("segment_dir", vec![base, 0, 0]));
        for operation in 0..14 {
            let edits = noise(u64::from(operation), 16);
            let mut script = vec![base, operation * 6, operation];
            for edit in edits.chunks(8) {
                script.push(operation);
                script.extend(&edit[1..]);
            }
            seeds.push(("segment_dir", script));
        }
    }
}

fn rows(seeds: &mut Seeds) {
    for base in bases() {
        for state in base.states.iter().step_by(15) {
            for (key, row) in &state.partitions {
                let key = encode_partition_key(key);
                let row = encode_partition(row).expect("encodes");
                let sizes = [key.len(), row.len()].map(|size| u8::try_from(size).unwrap_or(255));
                seeds.push(("snapshot_row", [&[2], &key[..]].concat()));
                seeds.push(("snapshot_row", [&[6, 0], &sizes[..], &key, &row].concat()));
                seeds.push(("snapshot_row", [&[0], &row[..]].concat()));
            }
            for (id, producer) in &state.producers {
                let row = encode_producer(producer).expect("encodes");
                seeds.push(("snapshot_row", [&[1], &row[..]].concat()));
                let size = u8::try_from(row.len()).expect("small");
                let mut rows = [&[6, 1, 8, size], &id.to_be_bytes()[..], &row].concat();
                for (epoch, open) in &producer.open {
                    for key in &open.keys {
                        let key = encode_producer_key(*id, *epoch, key);
                        rows.extend([2, u8::try_from(key.len()).expect("small"), 0]);
                        rows.extend(key);
                    }
                }
                seeds.push(("snapshot_row", rows));
            }
        }
    }
}

/// Batches of a real broker, some of them in each compression.
#[cfg(feature = "kafka")]
fn kafka(seeds: &mut Seeds) {
    use bytes::BytesMut;
    use kafka_protocol::records::{
        Compression, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
    };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kafka-4.4");
    for file in ["state-0.log", "state-1.log", "state-2.log"] {
        let mut rest = &std::fs::read(fixtures.join(file)).expect("fixture")[..];
        for number in 0..12 {
            let Some(length) = rest.get(8..12) else { break };
            let size = 12 + u32::from_be_bytes(length.try_into().expect("4 bytes")) as usize;
            let batch = &rest[..size];
            seeds.push(("kafka_import", batch.to_vec()));
            if number < 2 {
                let records = RecordBatchDecoder::decode(&mut &batch[..]).expect("a real batch");
                use Compression::{Gzip, Lz4, Snappy, Zstd};
                for compression in [Gzip, Lz4, Snappy, Zstd] {
                    let mut out = BytesMut::new();
                    let options = RecordEncodeOptions { version: 2, compression };
                    RecordBatchEncoder::encode(&mut out, &records.records, &options)
                        .expect("encodes");
                    seeds.push(("kafka_import", out.to_vec()));
                }
            }
            rest = &rest[size..];
        }
    }
}
