//! A segment file of Kafka's `__share_group_state`: batches, compression, records, replay. What is
//! accepted prints, encodes, and comes back from an export unchanged.

use sharestate::kafka_log::{Replay, ShareRecord, formatter_json, read_segment, write_segment};
use sharestate::model::StateBatch;

pub fn run(file: &[u8]) {
    let mut replay = Replay::new();
    let mut next_offset = None;
    let mut records = 0;
    let answer = read_segment("fuzz", file, &mut |record| {
        assert!(next_offset.is_none_or(|least| record.offset >= least));
        next_offset = Some(record.offset + 1);
        records += 1;
        check_record(&record.record);
        replay.apply("fuzz", &record)
    });
    if let Ok(summary) = answer {
        assert_eq!(summary.records, records);
        assert!(next_offset.is_none_or(|next| summary.last_offset >= Some(next - 1)));
        assert!(summary.trailing_zero_bytes <= file.len() as u64);
    }
    check_export(replay);
}

fn check_record(record: &ShareRecord) {
    let known = !matches!(record, ShareRecord::Unknown { .. });
    assert_eq!(formatter_json(record).is_some(), known);
    let (key, value) = (record.encode_key(), record.encode_value());
    let again = ShareRecord::decode(Some(&key), value.as_deref());
    assert_eq!(again.as_ref(), Ok(record));
}

fn check_export(replay: Replay) {
    let states = replay.finish();
    let exported = states.iter().map(|(key, state)| (key.clone(), state));
    let file = write_segment(exported, 7, 1_000).expect("what was replayed can be exported");
    let mut replay = Replay::new();
    read_segment("export", &file, &mut |record| replay.apply("export", &record))
        .expect("an export reads");
    assert!(replay.headless().is_empty());
    assert_eq!(replay.finish(), states);
    for state in states.values() {
        assert!(state.batches.iter().all(StateBatch::is_well_formed));
        assert_eq!(state.check_invariants(), Ok(()));
    }
}
