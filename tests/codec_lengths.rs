//! Whatever length a body claims, the decoder reserves no more memory than the bytes at hand can
//! account for: measured by the allocator of this program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use sharestate::codec;
use sharestate::model::{
    AckRange, AckType, DeliveryState, OpenEpoch, Partition, PendingAck, Producer,
    SharePartitionKey, StageCall, StageTransition, StateBatch, Transition, WriteTransition,
};
use uuid::Uuid;

/// What a decoder may reserve besides what the bytes hold.
const SLACK: usize = 64 << 10;
/// The same for more than two KiB of them.
const MORE_SLACK: usize = 256 << 10;

/// Notes the largest request of each thread, and refuses what no machine has.
struct Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands every request on to the system's allocator, or refuses it.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(layout.size())));
        if layout.size() > 1 << 30 {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn key() -> SharePartitionKey {
    SharePartitionKey::new("group", Uuid::from_u128(7), 3).expect("valid")
}

fn batches() -> Vec<StateBatch> {
    let run = |n: i64| StateBatch {
        first_offset: n * 10,
        last_offset: n * 10 + 4,
        delivery_state: DeliveryState::ACKNOWLEDGED,
        delivery_count: 1,
    };
    (1..4).map(run).collect()
}

fn call() -> StageCall {
    StageCall {
        lsn: 8,
        producer_id: 4_711,
        producer_epoch: 6,
        two_phase: false,
        transactional_id: "transaction".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 1,
        state_epoch: 1,
        leader_epoch: 1,
        stage_time_ms: 1,
    }
}

fn partition() -> Partition {
    let mut partition = Partition::new_initialized(1, 0, 1, None, 9);
    partition.batches = batches();
    partition.pending = vec![PendingAck {
        first_offset: 100,
        last_offset: 104,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 1,
        call: Arc::new(call()),
    }];
    partition
}

fn transitions() -> Vec<Transition> {
    let call = call();
    let write = WriteTransition {
        key: key(),
        start_offset: 0,
        delivery_complete_count: 3,
        batches: batches(),
        time_ms: 1,
    };
    let stage = StageTransition {
        key: key(),
        producer_id: call.producer_id,
        producer_epoch: call.producer_epoch,
        two_phase: false,
        transactional_id: call.transactional_id,
        member_id: call.member_id,
        member_epoch: 1,
        state_epoch: 1,
        leader_epoch: 1,
        time_ms: 1,
        acks: vec![AckRange {
            first_offset: 100,
            last_offset: 104,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    };
    let partition = Box::new(Partition { pending: Vec::new(), last_lsn: 0, ..partition() });
    vec![
        Transition::Delete { key: key() },
        Transition::Write(write),
        Transition::Stage(stage),
        Transition::ExpireProducers { producer_ids: vec![1, 2, 3] },
        Transition::Import { key: key(), partition },
    ]
}

/// Puts each length at each of the first bytes and decodes; answers the number of trials.
fn lie(name: &str, whole: &[u8], decode: &dyn Fn(&[u8]) -> bool) -> usize {
    assert!(decode(whole), "{name}: the untouched bytes decode");
    // The first length of a long body stands near its beginning.
    let (slack, bytes) = if whole.len() <= 2_048 { (SLACK, 2_048) } else { (MORE_SLACK, 100) };
    let mut trials = 0;
    for at in (0..whole.len().saturating_sub(7)).take(bytes) {
        for length in [1_u64 << 20, 1 << 31, 1 << 40, u64::MAX] {
            let mut bytes = whole.to_vec();
            bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
            LARGEST.set(0);
            decode(&bytes);
            let largest = LARGEST.get();
            assert!(largest <= bytes.len() + slack, "{name} byte {at}: {length} took {largest}");
            trials += 1;
        }
    }
    trials
}

#[test]
fn a_lying_length_never_reserves_more_than_the_bytes_account_for() {
    let mut trials = 0;
    for transition in transitions() {
        let mut body = Vec::new();
        let (kind, version) = codec::encode_transition(&transition, &mut body).expect("encodes");
        let decode = |bytes: &[u8]| codec::decode_transition(kind as u16, version, bytes).is_ok();
        trials += lie(transition.name(), &body, &decode);
    }
    let row = codec::encode_partition(&partition()).expect("encodes");
    trials += lie("partition row", &row, &|bytes| codec::decode_partition(bytes).is_ok());
    let run = |n: i64| StateBatch { first_offset: n, last_offset: n, ..batches()[0] };
    let long = Partition { batches: (0..1_000).map(|n| run(2 * n)).collect(), ..partition() };
    let row = codec::encode_partition(&long).expect("encodes");
    trials += lie("long partition row", &row, &|bytes| codec::decode_partition(bytes).is_ok());
    let open = OpenEpoch { two_phase: false, superseded_by: None, keys: [key()].into() };
    let producer = Producer { open: [(6, open)].into(), ..Producer::default() };
    let row = codec::encode_producer(&producer).expect("encodes");
    trials += lie("producer row", &row, &|bytes| codec::decode_producer(bytes).is_ok());
    println!("lying-lengths={trials}");
    assert!(trials > 2_000, "{trials}");
}
