//! Random histories of every command against the oracle that works offset by offset: every answer
//! and the whole state, field by field, after every step; and replay of what was logged.

#[path = "support/oracle.rs"]
mod oracle;

use proptest::prelude::*;
use sharestate::model::{
    AckRange, AckType, Command, DeliveryState, Marker, Options, Outcome, Partition,
    SharePartitionKey, Stage, State, StateBatch, apply, decide,
};
use uuid::Uuid;

fn key() -> impl Strategy<Value = SharePartitionKey> {
    prop::sample::select(vec![("a", 0), ("a", 1), ("b", 0)]).prop_map(|(group, partition)| {
        SharePartitionKey::new(group, Uuid::from_u128(1), partition).expect("valid")
    })
}

fn state() -> impl Strategy<Value = DeliveryState> {
    prop_oneof![8 => Just(0), 2 => Just(2), 2 => Just(3), 2 => Just(4), 1 => Just(1), 1 => Just(5)]
        .prop_map(DeliveryState)
}

/// Small numbers, at times an illegal or an extreme one.
fn epoch() -> impl Strategy<Value = i32> {
    prop_oneof![
        30 => 0..3,
        1 => Just(-1),
        1 => prop::sample::select(vec![i32::MIN, i32::MAX]),
    ]
}

fn start() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(-1), 20 => 0_i64..14, 1 => Just(-2)]
}

fn batches() -> impl Strategy<Value = Vec<StateBatch>> {
    let range = (0_i64..20, 0_i64..6);
    let count = prop_oneof![30 => 0_i16..4, 1 => Just(-1), 1 => Just(i16::MAX)];
    let batch =
        (range, state(), count).prop_map(|((first_offset, more), state, count)| StateBatch {
            first_offset,
            last_offset: first_offset + more,
            delivery_state: state,
            delivery_count: count,
        });
    prop::collection::vec(batch, 0..4)
}

fn count() -> impl Strategy<Value = i32> {
    prop_oneof![20 => -1_i32..8, 1 => Just(-2), 1 => Just(i32::MAX)]
}

fn producer_epoch() -> impl Strategy<Value = i16> {
    prop_oneof![
        30 => 0_i16..6,
        1 => Just(-1),
        3 => prop::sample::select(vec![i16::MIN, 32_765, 32_766, 32_767]),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![Just(Outcome::Commit), Just(Outcome::Abort)]
}

fn acks() -> impl Strategy<Value = Vec<AckRange>> {
    let kind = prop_oneof![
        8 => Just((AckType::Accept, 2, 0)),
        1 => Just((AckType::Accept, 2, 3)),
        1 => Just((AckType::Accept, 2, 4)),
        4 => Just((AckType::Reject, 4, 0)),
        1 => Just((AckType::Reject, 3, 4)),
        3 => Just((AckType::Gap, 4, 0)),
        1 => (0_i8..5, 0_i8..6, 0_i8..6).prop_map(|(ack_type, commit, abort)| {
            (AckType::from_raw(ack_type).expect("known"), commit, abort)
        }),
    ];
    let ack = (kind, 0_i64..3, 0_i64..5, 1_i16..4);
    (0_i64..20, prop::collection::vec(ack, 1..4)).prop_map(|(mut at, acks)| {
        let mut ranges = Vec::new();
        for ((ack_type, commit, abort), gap, more, delivery_count) in acks {
            let (first_offset, last_offset) = (at + gap, at + gap + more);
            at = last_offset + 1;
            ranges.push(AckRange {
                first_offset,
                last_offset,
                ack_type,
                commit_target: DeliveryState(commit),
                abort_target: DeliveryState(abort),
                delivery_count,
            });
        }
        ranges.reverse();
        ranges
    })
}

fn stage() -> impl Strategy<Value = Command> {
    let epochs = (prop_oneof![9 => Just(0), 1 => epoch()], epoch());
    let version = prop_oneof![20 => Just(2_i8), 1 => Just(1), 1 => Just(3)];
    let producer = (prop_oneof![20 => 7_i64..9, 1 => Just(-1)], producer_epoch());
    (key(), epochs, producer, any::<bool>(), version, acks()).prop_map(
        |(key, (state_epoch, leader_epoch), (producer_id, producer_epoch), two_phase, v, acks)| {
            Command::Stage(Stage {
                key,
                state_epoch,
                leader_epoch,
                producer_id,
                producer_epoch,
                two_phase,
                transaction_version: v,
                transactional_id: String::new(),
                member_id: String::new(),
                member_epoch: 0,
                acks,
            })
        },
    )
}

fn marker() -> impl Strategy<Value = Command> {
    let producer = (prop_oneof![30 => 7_i64..9, 1 => Just(-1)], producer_epoch());
    let coordinator = prop_oneof![20 => 1_i32..3, 1 => epoch()];
    (producer, coordinator, outcome(), 0_i8..3).prop_map(
        |((producer_id, producer_epoch), coordinator_epoch, outcome, transaction_version)| {
            Command::Marker(Marker {
                producer_id,
                producer_epoch,
                coordinator_epoch,
                outcome,
                transaction_version,
            })
        },
    )
}

fn import() -> impl Strategy<Value = Command> {
    let epochs = (epoch(), epoch(), epoch(), epoch());
    (key(), epochs, (start(), start()), count(), batches(), any::<bool>()).prop_map(
        |(key, epochs, starts, delivery_complete_count, batches, replace)| {
            let (state_epoch, leader_epoch, leader_fence, snapshot_epoch) = epochs;
            let partition = Box::new(Partition {
                state_epoch,
                leader_epoch,
                leader_fence,
                start_offset: starts.0,
                init_start_offset: starts.1,
                delivery_complete_count,
                snapshot_epoch,
                create_time_ms: 3,
                write_time_ms: 4,
                batches,
                pending: Vec::new(),
                last_lsn: 99,
            });
            Command::Import { key, partition, replace }
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let initialize = (key(), prop_oneof![5 => Just(0), 1 => epoch()], start()).prop_map(
        |(key, state_epoch, start_offset)| Command::Initialize { key, state_epoch, start_offset },
    );
    let write = (key(), epoch(), epoch(), start(), count(), batches()).prop_map(
        |(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches)| {
            Command::Write {
                key,
                state_epoch,
                leader_epoch,
                start_offset,
                delivery_complete_count,
                batches,
            }
        },
    );
    let read = (key(), epoch()).prop_map(|(key, leader_epoch)| Command::Read { key, leader_epoch });
    let force =
        (7_i64..9, producer_epoch(), outcome()).prop_map(|(producer_id, epoch, outcome)| {
            Command::ForceResolve { producer_id, epoch, outcome }
        });
    let expire = prop::collection::vec(6_i64..10, 0..4)
        .prop_map(|producer_ids| Command::ExpireProducers { producer_ids });
    prop_oneof![
        12 => initialize,
        24 => write,
        8 => read,
        2 => key().prop_map(|key| Command::Summary { key }),
        2 => key().prop_map(|key| Command::Delete { key }),
        40 => stage(),
        24 => marker(),
        6 => force,
        3 => expire,
        2 => import(),
    ]
}

/// `i32::MAX` as an epoch ends a history early, so the first commands are sane ones.
fn history() -> impl Strategy<Value = Vec<(Command, i64)>> {
    let keys = [("a", 0, 0), ("a", 1, -1), ("b", 0, 4)];
    let initialize = keys.map(|(group, partition, start_offset)| {
        let key = SharePartitionKey::new(group, Uuid::from_u128(1), partition).expect("valid");
        (Command::Initialize { key, state_epoch: 0, start_offset }, 1)
    });
    prop::collection::vec((command(), 0_i64..40), 1..80)
        .prop_map(move |commands| initialize.iter().cloned().chain(commands).collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn store_and_oracle_agree_on_every_answer_and_on_the_state(history in history()) {
        let options = Options { producer_id_expiration_ms: 100 };
        let (mut store, mut lsn, mut now) = (State::default(), 0, 0);
        let (mut oracle, mut replica) = (oracle::Oracle::default(), State::default());
        for (command, pause) in history {
            now += pause;
            let expected = oracle.execute(&command, now, &options);
            let transition = decide(&store, &command, now, &options).transition;
            let answer = store.execute(&mut lsn, &command, now, &options);
            prop_assert_eq!(oracle::told(answer), expected, "{:?}", command);
            prop_assert_eq!(oracle::view(&store), oracle.view(), "{:?}", command);
            prop_assert_eq!(store.check_invariants(), Ok(()));
            if let Some(transition) = transition {
                prop_assert!(apply(&mut replica, lsn, &transition).is_ok());
            }
        }
        prop_assert_eq!(replica, store);
    }
}
