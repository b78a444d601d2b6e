//! A marker costs in proportion to what it resolves, not to the number of share partitions; and
//! what staging 2,000 single-offset ranges of alternating types costs.

mod common;

use std::time::{Duration, Instant};

use common::{fill_snapshot, key};
use criterion::{BenchmarkId, Criterion};
use sharestate::{AckRange, AckType, DeliveryState, Marker, Options, Outcome, ShareStore, Stage};

/// Ranges in one share partition.
const RANGES_PER_PARTITION: u32 = 10;

fn ack(offset: i64, ack_type: AckType) -> AckRange {
    let commit_target = match ack_type {
        AckType::Accept => DeliveryState::ACKNOWLEDGED,
        _ => DeliveryState::ARCHIVED,
    };
    AckRange {
        first_offset: offset,
        last_offset: offset,
        ack_type,
        commit_target,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 1,
    }
}

fn stage(partition: u32, producer_epoch: i16, acks: Vec<AckRange>) -> Stage {
    Stage {
        key: key(partition),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id: 1,
        producer_epoch,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "bench".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 1,
        acks,
    }
}

fn marker(producer_epoch: i16) -> Marker {
    Marker {
        producer_id: 1,
        producer_epoch,
        coordinator_epoch: 0,
        outcome: Outcome::Abort, // the offsets can be staged again
        transaction_version: 2,
    }
}

fn markers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("marker");
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    for partitions in [1_000, 1_000_000] {
        let dir = tempfile::tempdir().expect("directory");
        fill_snapshot(dir.path(), partitions);
        let store = ShareStore::open(dir.path(), &Options::default()).expect("open").blocking();
        let mut epoch = 0;
        let mut delivery_count = 0;
        for ranges in [1_u32, 100, 10_000] {
            let id = BenchmarkId::new(format!("{partitions} share partitions"), ranges);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|iters| {
                    let mut total = Duration::ZERO;
                    for _ in 0..iters {
                        delivery_count += 1;
                        let stages = (0..ranges.div_ceil(RANGES_PER_PARTITION)).map(|n| {
                            let many = RANGES_PER_PARTITION.min(ranges);
                            let acks = (0..many).map(|a| AckRange {
                                delivery_count,
                                ..ack(100 + i64::from(a) * 2, AckType::Accept)
                            });
                            stage(n, epoch, acks.collect())
                        });
                        for staged in store.stage_all(stages.collect()) {
                            staged.expect("stage");
                        }
                        epoch += 1;
                        let started = Instant::now();
                        let resolved = store.marker(marker(epoch)).expect("marker");
                        total += started.elapsed();
                        assert_eq!(
                            resolved.partitions.len() as u32,
                            ranges.div_ceil(RANGES_PER_PARTITION)
                        );
                    }
                    total
                });
            });
        }
    }
    group.finish();
}

fn alternating_stage(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("directory");
    fill_snapshot(dir.path(), 1_000);
    let store = ShareStore::open(dir.path(), &Options::default()).expect("open").blocking();
    let mut group = criterion.benchmark_group("stage and resolve");
    group.sample_size(10);
    let mut epoch = 0;
    let mut delivery_count = 0;
    group.bench_function("2,000 single-offset ranges of alternating types", |bencher| {
        bencher.iter(|| {
            delivery_count += 1;
            let acks = (0..2_000).map(|n| AckRange {
                delivery_count,
                ..ack(100 + n, if n % 2 == 0 { AckType::Accept } else { AckType::Reject })
            });
            let abort = |ack: AckRange| AckRange { abort_target: DeliveryState::AVAILABLE, ..ack };
            store.stage(stage(0, epoch, acks.map(abort).collect())).expect("stage");
            epoch += 1;
            store.marker(marker(epoch)).expect("marker");
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    markers(&mut criterion);
    alternating_stage(&mut criterion);
    criterion.final_summary();
}
