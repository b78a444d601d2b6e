//! LSNs near the ends of their range.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{LogError, Lsn, Scope, SegmentHeader, SegmentId};

/// A log whose only segment begins with this LSN.
fn begins_at(first_lsn: Lsn) -> Arc<dyn Fs> {
    let sim = SimFs::new(0);
    sim.create_dir(&dir()).expect("created");
    let id = SegmentId { uuid: store(), first_lsn };
    let header = SegmentHeader { id, segment_bytes: SEGMENT_BYTES, incarnation: 1 };
    let mut bytes = header.encode().to_vec();
    bytes.resize(SEGMENT_BYTES as usize, 0);
    sim.set_content(&segment(first_lsn), &bytes);
    Arc::new(sim)
}

/// redb 516: offsets wrapped at a power of two.
#[test]
fn lsns_do_not_wrap() {
    for first_lsn in [(1 << 32) - 10, (1 << 63) - 10] {
        let fs = begins_at(first_lsn);
        for round in 0..6 {
            let (lsns, scanned) = read(&fs, first_lsn - 1, Scope::Tail).expect("readable");
            let so_far: Vec<_> = (first_lsn..first_lsn + round * 20).collect();
            assert_eq!(lsns, so_far);
            let (mut log, _) =
                scanned.repair(&quarantine(), round + 2, options(false)).expect("log");
            (0..20).for_each(|_| append_synced(&mut log, 1).expect("written"));
        }
    }
    let fs = begins_at(Lsn::MAX - 10);
    let (_, scanned) = read(&fs, Lsn::MAX - 11, Scope::Tail).expect("readable");
    let (mut log, _) = scanned.repair(&quarantine(), 2, options(false)).expect("a log");
    append_synced(&mut log, 9).expect("written");
    for _ in 0..2 {
        let error = append(&mut log, 1).expect_err("used up");
        assert!(
            matches!(error, LogError::LsnsExhausted { last } if last == Lsn::MAX - 2),
            "{error}"
        );
    }
    let (lsns, _) = read(&fs, Lsn::MAX - 11, Scope::Tail).expect("readable");
    assert_eq!(lsns.len(), 9);
}
