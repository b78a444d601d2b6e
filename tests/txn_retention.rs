//! What is open for long neither holds up the log nor is forgotten with it.
#![cfg(feature = "rocksdb")]

#[path = "txn_support/real.rs"]
mod real;
mod support;

use std::sync::Arc;
use std::time::Duration;

use real::Real;
use sharestate::fsio::RealFs;
use sharestate::log::{Scope, scan};
use sharestate::model::Transition;
use sharestate::{
    AckRange, AckType, CheckpointError, DeliveryState, Marker, Outcome, PendingFilter, Stage, codec,
};
use support::{batch, key, write};

const PID: i64 = 7;

fn stage(producer_id: i64, producer_epoch: i16, offset: i64) -> Stage {
    Stage {
        key: key("g", 0),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id,
        producer_epoch,
        two_phase: true,
        transaction_version: 2,
        transactional_id: "nightly".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 1,
        acks: vec![AckRange {
            first_offset: offset,
            last_offset: offset + 4,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    }
}

fn commit(producer_id: i64, epoch: i16) -> Marker {
    let (coordinator_epoch, transaction_version) = (3, 2);
    let outcome = Outcome::Commit;
    let producer_epoch = epoch + 1;
    Marker { producer_id, producer_epoch, coordinator_epoch, outcome, transaction_version }
}

/// Bytes that one batch takes in the log.
const BATCH_BYTES: u64 = 19;

/// Writes `bytes` of log to another share partition, with a checkpoint after every half segment.
/// Answers the most segments that there ever were.
fn traffic(real: &Real, bytes: u64, segment_bytes: u64) -> usize {
    let busy = key("busy", 0);
    real.blocking().initialize(&busy, 1, 0).expect("initialize");
    let batches = i64::try_from(segment_bytes / 8 / BATCH_BYTES).expect("small").min(60_000);
    let change: Vec<_> = (0..batches).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
    let change_bytes = batches.unsigned_abs() * BATCH_BYTES;
    let (mut written, mut folded, mut most) = (0, 0, 0);
    while written < bytes {
        real.blocking().write(&busy, write(&change)).expect("write");
        written += change_bytes;
        if written - folded >= segment_bytes / 2 {
            real.checkpoint();
            folded = written;
        }
        most = most.max(support::segments(real.path()).len());
    }
    most
}

/// First LSN that the log still has.
fn log_begins(real: &Real) -> u64 {
    let oldest = support::segments(real.path()).remove(0);
    let name = oldest.file_stem().and_then(|name| name.to_str()).expect("name");
    name.parse().expect("an LSN")
}

/// As a broker opens a store, but for the sizes: the next segment is made ahead of need.
fn options(segment_bytes: u64) -> sharestate::Options {
    let mut options = real::options(segment_bytes);
    options.background_segments = true;
    options
}

#[test]
fn a_transaction_left_prepared_does_not_pin_the_log() {
    let bytes = std::env::var("SHARESTATE_RETENTION_BYTES");
    let bytes: u64 = bytes.map_or(20 << 20, |text| text.parse().expect("a number of bytes"));
    let segment_bytes = if bytes > 1 << 30 { 64 << 20 } else { 64 << 10 };
    let mut real = Real::open(options(segment_bytes));
    real.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    real.blocking().stage(stage(PID, 0, 0)).expect("staged");
    let staged_at = real.logged();
    let most = traffic(&real, bytes, segment_bytes);
    println!("retention-bytes={bytes} segment-bytes={segment_bytes} segments-at-most={most}");
    assert!(most <= 4, "{most} segments");
    assert!(log_begins(&real) > staged_at + 100, "the stage's entry is long gone from the log");

    real.clock.advance(30 * 86_400_000);
    real.kill_and_open();
    let pending = real.blocking().pending(PendingFilter::default()).expect("listed");
    assert_eq!(pending.len(), 1);
    assert_eq!((pending[0].producer_id, pending[0].lsn()), (PID, staged_at));
    assert_eq!(pending[0].oldest.transactional_id, "nightly");
    let resolved = real.blocking().marker(commit(PID, 0)).expect("taken").partitions;
    assert_eq!(resolved, [(key("g", 0), vec![(0, 4)])]);
    real.close_and_open();
    let row = real.blocking().read(&key("g", 0), 0).expect("read").partition;
    assert_eq!(
        (row.batches, row.pending, row.delivery_complete_count),
        (vec![batch(0, 4, 2, 1)], vec![], 5)
    );
}

#[test]
fn a_producer_with_nothing_pending_is_remembered_over_checkpoint_purge_and_restart() {
    let mut real = Real::open(options(16 << 10));
    real.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    real.blocking().stage(stage(PID, 3, 0)).expect("staged");
    real.blocking().marker(commit(PID, 3)).expect("taken");
    // And one that never staged anything: its marker came first.
    real.blocking().marker(commit(8, 3)).expect("taken");
    let last = real.logged();
    traffic(&real, 256 << 10, 16 << 10);
    assert!(log_begins(&real) > last, "what they did is gone from the log");
    for round in 0..4 {
        if round % 2 == 0 {
            real.kill_and_open();
        } else {
            real.close_and_open();
        }
        for producer_id in [PID, 8] {
            real.refuses(stage(producer_id, 3, 10), Some(47));
            real.refuses(Marker { coordinator_epoch: 2, ..commit(producer_id, 4) }, Some(52));
            real.refuses(commit(producer_id, 1), Some(47));
            let repeated = real.blocking().marker(commit(producer_id, 3)).expect("a repeat");
            assert_eq!((repeated.partitions.len(), repeated.contradicts), (0, false));
        }
    }
}

const HOUR_MS: i64 = 3_600_000;

/// Looks for expired producers all the time; they expire after an hour of the test's clock.
fn expiring() -> Real {
    let mut options = options(64 << 10);
    options.producer_id_expiration = Duration::from_millis(HOUR_MS.unsigned_abs());
    options.producer_expiry_interval = Duration::from_millis(2);
    Real::open(options)
}

/// The remembered producers, once there are as many as expected.
fn remembered(real: &Real, expected: usize) -> Vec<i64> {
    for _ in 0..5_000 {
        let (producers, _) = real.blocking().producers(None, 10_000).expect("read");
        if producers.len() == expected {
            return producers.into_iter().map(|(id, _)| id).collect();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("never {expected} producers");
}

/// The producers that the entries of the log behind `lsn` forget.
fn forgotten_in_the_log(real: &Real, behind: u64) -> Vec<i64> {
    let image = real.beside("log-image");
    support::crash_image(real.path(), &image);
    let mut forgotten = Vec::new();
    let (fs, wal) = (Arc::new(RealFs), image.join("wal"));
    scan(fs, &wal, real.store().uuid(), 0, Scope::All, &mut |entry| {
        let transition = codec::decode_transition(entry.kind, entry.version, entry.body);
        if let Transition::ExpireProducers { producer_ids } = transition.expect("decodes")
            && entry.lsn > behind
        {
            forgotten.extend(producer_ids);
        }
        Ok::<_, CheckpointError>(())
    })
    .expect("scanned");
    std::fs::remove_dir_all(image).expect("remove");
    forgotten
}

#[test]
fn expiry_forgets_idle_producers_never_pending_ones_and_is_logged() {
    let mut real = expiring();
    real.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let (idle, pending, busy) = (1, 2, 3);
    real.blocking().marker(commit(idle, 0)).expect("taken");
    real.blocking().stage(stage(pending, 0, 0)).expect("staged");
    real.blocking().marker(commit(busy, 0)).expect("taken");
    real.clock.advance(HOUR_MS - 1);
    real.blocking().marker(commit(busy, 1)).expect("taken");
    let before = real.logged();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(remembered(&real, 3), [idle, pending, busy], "an hour is not over");
    assert_eq!(real.logged(), before);

    real.clock.advance(1);
    assert_eq!(remembered(&real, 2), [pending, busy]);
    assert_eq!((real.logged(), forgotten_in_the_log(&real, before)), (before + 1, vec![idle]));
    real.kill_and_open();
    assert_eq!(remembered(&real, 2), [pending, busy], "what the log forgot stays forgotten");
    real.blocking().stage(stage(idle, 0, 100)).expect("a producer that nobody knows may stage");

    real.clock.advance(1_000 * HOUR_MS);
    assert_eq!(remembered(&real, 2), [idle, pending], "whatever its age, a pending ack stays");
    let resolved = real.blocking().marker(commit(pending, 0)).expect("taken").partitions;
    assert_eq!(resolved, [(key("g", 0), vec![(0, 4)])]);
    assert_eq!(remembered(&real, 2), [idle, pending], "it was used just now");
    real.clock.advance(HOUR_MS);
    assert_eq!(remembered(&real, 1), [idle]);
}

#[test]
fn expiry_walks_over_more_producers_than_it_looks_at_once() {
    const PRODUCERS: i64 = 700;
    let mut real = expiring();
    real.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let stages = (0..PRODUCERS).step_by(5).map(|id| stage(id, 0, id * 10)).collect();
    real.blocking().stage_all(stages).into_iter().for_each(|answer| drop(answer.expect("staged")));
    for id in (0..PRODUCERS).filter(|id| id % 5 != 0) {
        real.blocking().marker(commit(id, 0)).expect("taken");
    }
    assert_eq!(remembered(&real, 700).len(), 700);
    real.clock.advance(HOUR_MS);
    let left = remembered(&real, 140);
    assert!(left.iter().all(|id| id % 5 == 0), "those with pending acks");
    real.kill_and_open();
    assert_eq!(remembered(&real, 140), left);
}
