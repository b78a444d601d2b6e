//! `apply` in replay: a transition that the state cannot have led to is a typed error that names
//! the row, and changes nothing. One case per way to be impossible and kind of transition.

use std::sync::Arc;

use sharestate::model::{
    AckRange, AckType, Answer, Command, DeliveryState, ForceResolveTransition, Impossible, Marker,
    MarkerTransition, Options, Outcome, Partition, Producer, RowId, SharePartitionKey, Stage,
    StageTransition, State, StateBatch, Transition, WriteTransition, apply, reads, touches,
};
use uuid::Uuid;

const PID: i64 = 7;

fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group", Uuid::from_u128(1), partition).expect("valid")
}

fn partition(number: i32) -> RowId {
    RowId::Partition(key(number))
}

fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
    let delivery_state = DeliveryState(state);
    StateBatch { first_offset, last_offset, delivery_state, delivery_count }
}

fn ack(first_offset: i64, last_offset: i64) -> AckRange {
    AckRange {
        first_offset,
        last_offset,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 2,
    }
}

fn run(state: &mut State, lsn: &mut u64, command: Command) -> Answer {
    state.execute(lsn, &command, 1_000, &Options::default()).expect("accepted")
}

fn stage_command(partition: i32, acks: Vec<AckRange>) -> Command {
    Command::Stage(Stage {
        key: key(partition),
        state_epoch: 3,
        leader_epoch: 5,
        producer_id: PID,
        producer_epoch: 2,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "transaction".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 1,
        acks,
    })
}

/// Entry 12 comes next. Partition 0: start 10, fence 5, an acknowledged batch at 30..=39, acks of
/// epoch 2 pending at 20..=29. Partition 1: acks of epoch 2 pending at 20. Partition 2 is absent.
/// Producer 7 completed epoch 2 and coordinator epoch 4; producer 8 has nothing open.
fn before() -> State {
    let (mut state, mut lsn) = (State::default(), 0);
    for partition in [0, 1] {
        let (state_epoch, start_offset) = (3, 10);
        let command = Command::Initialize { key: key(partition), state_epoch, start_offset };
        run(&mut state, &mut lsn, command);
        let command = Command::Read { key: key(partition), leader_epoch: 5 };
        run(&mut state, &mut lsn, command);
    }
    let write = Command::Write {
        key: key(0),
        state_epoch: 3,
        leader_epoch: 5,
        start_offset: 10,
        delivery_complete_count: 10,
        batches: vec![batch(30, 39, 2, 1)],
    };
    run(&mut state, &mut lsn, write);
    for producer_id in [PID, 8] {
        let (coordinator_epoch, outcome) = (4, Outcome::Commit);
        let (producer_epoch, transaction_version) = (2, 2);
        run(
            &mut state,
            &mut lsn,
            Command::Marker(Marker {
                producer_id,
                producer_epoch,
                coordinator_epoch,
                outcome,
                transaction_version,
            }),
        );
    }
    run(&mut state, &mut lsn, stage_command(0, vec![ack(20, 29)]));
    run(&mut state, &mut lsn, stage_command(1, vec![ack(20, 20)]));
    assert_eq!((lsn, state.check_invariants()), (9, Ok(())));
    state
}

/// How a possible transition is spoiled, and why it is impossible then.
type Case<T> = (Impossible, fn(&mut T));

const NEXT: u64 = 12;

fn is_impossible_in(mut state: State, transition: &Transition, row: RowId, reason: Impossible) {
    let before = state.clone();
    let error = apply(&mut state, NEXT, transition).expect_err("impossible");
    assert_eq!((error.lsn, error.transition), (NEXT, transition.name()), "{error}");
    assert_eq!((&error.row, error.reason), (&row, reason), "{transition:?}");
    assert!(error.to_string().contains(&row.to_string()), "{error}");
    assert_eq!(state, before, "an error changes nothing");
}

fn is_impossible(transition: &Transition, row: RowId, reason: Impossible) {
    is_impossible_in(before(), transition, row, reason);
}

fn is_possible(transition: &Transition) -> State {
    let mut state = before();
    let effects = apply(&mut state, NEXT, transition).expect("possible");
    assert_eq!(state.check_invariants(), Ok(()));
    assert!(effects.touched.is_sorted_by(|a, b| a < b), "{:?}", effects.touched);
    for row in effects.touched {
        let lsn = match row {
            RowId::Partition(key) => state.partitions.get(&key).map(|row| row.last_lsn),
            RowId::Producer(id) => state.producers.get(&id).map(|row| row.last_lsn),
        };
        assert!(lsn.is_none_or(|lsn| lsn == NEXT));
    }
    state
}

fn changed_at(state: &mut State, row: &RowId, lsn: u64) {
    match row {
        RowId::Partition(key) => {
            Arc::make_mut(state.partitions.get_mut(key).expect("there")).last_lsn = lsn;
        }
        RowId::Producer(id) => {
            Arc::make_mut(state.producers.get_mut(id).expect("there")).last_lsn = lsn;
        }
    }
}

fn initialize(partition: i32, state_epoch: i32, start_offset: i64) -> Transition {
    Transition::Initialize { key: key(partition), state_epoch, start_offset, time_ms: 2_000 }
}

fn write() -> WriteTransition {
    WriteTransition {
        key: key(0),
        start_offset: 30,
        delivery_complete_count: 4,
        batches: vec![batch(40, 49, 0, 1)],
        time_ms: 2_000,
    }
}

fn leader_epoch(partition: i32, leader_epoch: i32) -> Transition {
    Transition::LeaderEpoch { key: key(partition), leader_epoch }
}

fn import(spoil: impl FnOnce(&mut Partition)) -> Transition {
    let mut row = Partition::new_initialized(3, 10, 1_000, None, 0);
    row.batches = vec![batch(10, 14, 2, 1), batch(15, 19, 0, 1)];
    spoil(&mut row);
    Transition::Import { key: key(0), partition: Box::new(row) }
}

fn stage() -> StageTransition {
    StageTransition {
        key: key(0),
        producer_id: PID,
        producer_epoch: 2,
        two_phase: false,
        transactional_id: "transaction".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 1,
        state_epoch: 3,
        leader_epoch: 5,
        time_ms: 2_000,
        acks: vec![ack(12, 14), ack(50, 59)],
    }
}

fn marker() -> MarkerTransition {
    MarkerTransition {
        producer_id: PID,
        producer_epoch: 3,
        coordinator_epoch: 4,
        transaction_version: 2,
        outcome: Outcome::Commit,
        resolves: Some(2),
        completes: Some(3),
        time_ms: 2_000,
    }
}

fn force() -> ForceResolveTransition {
    let (outcome, time_ms) = (Outcome::Abort, 2_000);
    ForceResolveTransition { producer_id: PID, epoch: 2, outcome, completes: Some(3), time_ms }
}

fn expire(producer_ids: &[i64]) -> Transition {
    Transition::ExpireProducers { producer_ids: producer_ids.to_vec() }
}

/// One possible transition of each kind.
fn all() -> Vec<Transition> {
    vec![
        initialize(0, 4, 0),
        Transition::Write(write()),
        leader_epoch(0, 6),
        Transition::Delete { key: key(0) },
        Transition::Stage(stage()),
        Transition::Marker(marker()),
        Transition::ForceResolve(force()),
        expire(&[8]),
        import(|_| ()),
    ]
}

#[test]
fn every_kind_is_possible_to_begin_with_and_stamps_what_it_touches() {
    for transition in all() {
        is_possible(&transition);
    }
    is_possible(&initialize(2, 0, -1));
}

#[test]
fn touches_names_exactly_the_rows_that_change() {
    for transition in all() {
        let mut state = before();
        let named = touches(&state, &transition);
        let effects = apply(&mut state, NEXT, &transition).expect("possible");
        assert_eq!(effects.touched, named, "{transition:?}");
    }
}

#[test]
fn an_entry_that_is_not_newer_than_a_row_it_touches_is_impossible() {
    for transition in all() {
        for row in touches(&before(), &transition) {
            for lsn in [NEXT, NEXT + 1] {
                let mut state = before();
                changed_at(&mut state, &row, lsn);
                is_impossible_in(state, &transition, row.clone(), Impossible::NotNewer);
            }
            let mut state = before();
            changed_at(&mut state, &row, NEXT - 1);
            apply(&mut state, NEXT, &transition).expect("possible");
        }
    }
}

#[test]
fn applying_an_entry_twice_is_impossible() {
    for transition in all() {
        let mut state = before();
        apply(&mut state, NEXT, &transition).expect("possible");
        let once = state.clone();
        apply(&mut state, NEXT, &transition).expect_err("impossible");
        assert_eq!(state, once);
    }
}

#[test]
fn a_transition_of_an_absent_row_is_impossible() {
    let absent = [
        Transition::Write(WriteTransition { key: key(2), ..write() }),
        leader_epoch(2, 6),
        Transition::Delete { key: key(2) },
        Transition::Stage(StageTransition { key: key(2), ..stage() }),
    ];
    for transition in absent {
        is_impossible(&transition, partition(2), Impossible::NoRow);
    }
    let stranger = RowId::Producer(9);
    let marker = MarkerTransition { producer_id: 9, ..marker() };
    is_impossible(&Transition::Marker(marker), stranger.clone(), Impossible::NoRow);
    let force = ForceResolveTransition { producer_id: 9, ..force() };
    is_impossible(&Transition::ForceResolve(force), stranger.clone(), Impossible::NoRow);
    is_impossible(&expire(&[8, 9]), stranger, Impossible::NoRow);
}

#[test]
fn a_transition_whose_further_rows_are_missing_is_impossible() {
    let mut state = before();
    state.producers.remove(&PID);
    let releasing = [initialize(0, 4, 0), Transition::Write(write()), import(|_| ())];
    for transition in releasing.iter().chain(&[Transition::Delete { key: key(0) }]) {
        let row = RowId::Producer(PID);
        is_impossible_in(state.clone(), transition, row, Impossible::NoRow);
    }
    let mut state = before();
    state.partitions.remove(&key(1));
    for transition in [Transition::Marker(marker()), Transition::ForceResolve(force())] {
        is_impossible_in(state.clone(), &transition, partition(1), Impossible::NoRow);
    }
}

#[test]
fn rows_that_contradict_each_other_are_impossible() {
    // The producer does not know of the acks that go.
    let mut state = before();
    let producer = state.producers.get_mut(&PID).expect("there");
    Arc::make_mut(producer).open.get_mut(&2).expect("open").keys.remove(&key(0));
    assert!(state.check_invariants().is_err());
    is_impossible_in(
        state,
        &Transition::Delete { key: key(0) },
        RowId::Producer(PID),
        Impossible::NotOpen,
    );
    // The share partition does not hold what the producer says it does.
    let mut state = before();
    Arc::make_mut(state.partitions.get_mut(&key(1)).expect("there")).pending.clear();
    assert!(state.check_invariants().is_err());
    for transition in [Transition::Marker(marker()), Transition::ForceResolve(force())] {
        is_impossible_in(state.clone(), &transition, partition(1), Impossible::NotOpen);
    }
}

#[test]
fn impossible_initializes() {
    is_impossible(&initialize(0, -1, 0), partition(0), Impossible::Malformed);
    is_impossible(&initialize(0, 4, -2), partition(0), Impossible::Malformed);
    is_impossible(&initialize(0, 2, 0), partition(0), Impossible::GoesBack);
    is_impossible(&initialize(0, 3, 10), partition(0), Impossible::NoChange);
}

#[test]
fn impossible_writes() {
    let spoiled = |spoil: fn(&mut WriteTransition)| {
        let mut write = write();
        spoil(&mut write);
        Transition::Write(write)
    };
    let goes_back = spoiled(|write| write.start_offset = 9);
    is_impossible(&goes_back, partition(0), Impossible::GoesBack);
    let malformed: [fn(&mut WriteTransition); 7] = [
        |write| write.delivery_complete_count = -2,
        |write| write.batches[0].first_offset = 29,
        |write| write.batches[0].delivery_state = DeliveryState::ACQUIRED,
        |write| write.batches[0].delivery_count = -1,
        |write| write.batches.push(batch(49, 60, 2, 1)),
        |write| write.batches.push(batch(50, 60, 0, 1)),
        |write| write.batches.push(batch(30, 31, 2, 1)),
    ];
    for spoil in malformed {
        is_impossible(&spoiled(spoil), partition(0), Impossible::Malformed);
    }
    let taken = spoiled(|write| {
        write.start_offset = 20;
        write.batches = vec![batch(29, 29, 0, 1)];
    });
    is_impossible(&taken, partition(0), Impossible::Taken);
}

#[test]
fn impossible_leader_epochs() {
    is_impossible(&leader_epoch(0, 5), partition(0), Impossible::GoesBack);
    is_impossible(&leader_epoch(0, i32::MIN), partition(0), Impossible::GoesBack);
}

#[test]
fn impossible_imports() {
    let spoils: [fn(&mut Partition); 7] = [
        |row| row.state_epoch = -1,
        |row| row.leader_epoch = 1,
        |row| row.start_offset = -2,
        |row| row.start_offset = 11,
        |row| row.delivery_complete_count = -2,
        |row| row.batches[0].last_offset = 15,
        |row| row.pending = before().partitions[&key(0)].pending.clone(),
    ];
    for spoil in spoils {
        is_impossible(&import(spoil), partition(0), Impossible::Malformed);
    }
}

#[test]
fn impossible_stages() {
    let spoiled = |spoil: fn(&mut StageTransition)| {
        let mut stage = stage();
        spoil(&mut stage);
        Transition::Stage(stage)
    };
    let of_partition: [Case<StageTransition>; 16] = [
        (Impossible::Malformed, |stage| stage.producer_id = -1),
        (Impossible::Malformed, |stage| stage.producer_epoch = -1),
        (Impossible::Malformed, |stage| stage.producer_epoch = i16::MAX),
        (Impossible::Malformed, |stage| stage.acks.clear()),
        (Impossible::Malformed, |stage| stage.acks.reverse()),
        (Impossible::Malformed, |stage| stage.acks.push(ack(59, 60))),
        (Impossible::Malformed, |stage| stage.acks[0].last_offset = 11),
        (Impossible::Malformed, |stage| stage.acks[0].delivery_count = -1),
        (Impossible::Malformed, |stage| stage.acks[0].ack_type = AckType::Renew),
        (Impossible::GoesBack, |stage| stage.leader_epoch = 4),
        (Impossible::GoesBack, |stage| stage.state_epoch = 4),
        (Impossible::Taken, |stage| stage.acks[0].last_offset = 20),
        (Impossible::Taken, |stage| stage.acks[0] = ack(20, 29)),
        (Impossible::Taken, |stage| stage.acks[0].first_offset = 9),
        (Impossible::Taken, |stage| stage.acks[1].first_offset = 39),
        (Impossible::Taken, |stage| stage.acks.push(ack(60, 69))),
    ];
    for (reason, spoil) in of_partition {
        is_impossible(&spoiled(spoil), partition(0), reason);
    }
    let of_producer: [Case<StageTransition>; 2] = [
        (Impossible::GoesBack, |stage| stage.producer_epoch = 1),
        (Impossible::NotOpen, |stage| stage.two_phase = true),
    ];
    for (reason, spoil) in of_producer {
        is_impossible(&spoiled(spoil), RowId::Producer(PID), reason);
    }
}

#[test]
fn impossible_markers() {
    let spoiled = |spoil: fn(&mut MarkerTransition)| {
        let mut marker = marker();
        spoil(&mut marker);
        Transition::Marker(marker)
    };
    let cases: [Case<MarkerTransition>; 8] = [
        (Impossible::Malformed, |marker| {
            (marker.producer_epoch, marker.completes) = (-1, Some(-1));
        }),
        (Impossible::Malformed, |marker| marker.completes = Some(4)),
        (Impossible::GoesBack, |marker| marker.coordinator_epoch = 3),
        (Impossible::GoesBack, |marker| {
            (marker.producer_epoch, marker.completes) = (2, Some(2));
        }),
        (Impossible::NoChange, |marker| (marker.resolves, marker.completes) = (None, None)),
        (Impossible::NotOpen, |marker| marker.resolves = Some(1)),
        (Impossible::NotOpen, |marker| marker.resolves = Some(3)),
        (Impossible::NotOpen, |marker| marker.resolves = Some(i16::MIN)),
    ];
    for (reason, spoil) in cases {
        is_impossible(&spoiled(spoil), RowId::Producer(PID), reason);
    }
    let negative = spoiled(|marker| marker.producer_id = -1);
    is_impossible(&negative, RowId::Producer(-1), Impossible::Malformed);
}

#[test]
fn impossible_forced_resolutions() {
    let spoiled = |spoil: fn(&mut ForceResolveTransition)| {
        let mut force = force();
        spoil(&mut force);
        Transition::ForceResolve(force)
    };
    let cases: [Case<ForceResolveTransition>; 4] = [
        (Impossible::Malformed, |force| force.completes = Some(2)),
        (Impossible::Malformed, |force| (force.epoch, force.completes) = (i16::MAX, Some(0))),
        (Impossible::GoesBack, |force| (force.epoch, force.completes) = (1, Some(2))),
        (Impossible::NotOpen, |force| (force.epoch, force.completes) = (3, None)),
    ];
    for (reason, spoil) in cases {
        is_impossible(&spoiled(spoil), RowId::Producer(PID), reason);
    }
}

#[test]
fn impossible_expiries() {
    is_impossible(&expire(&[PID, 8]), RowId::Producer(PID), Impossible::Pending);
    is_impossible(&expire(&[8, 8]), RowId::Producer(8), Impossible::Malformed);
    is_impossible(&expire(&[8, PID]), RowId::Producer(8), Impossible::Malformed);
    is_impossible(&expire(&[]), RowId::Producer(-1), Impossible::NoChange);
}

/// No history leads to a pending ack over a higher count or over a terminal state; the log's order
/// decides all the same, not `combine`, and no offset is counted twice.
#[test]
fn a_resolution_is_painted_not_combined_and_counts_what_becomes_terminal() {
    let mut state = before();
    let row = Arc::make_mut(state.partitions.get_mut(&key(0)).expect("there"));
    row.batches = vec![batch(18, 24, 4, 7), batch(25, 27, 0, 7)];
    apply(&mut state, NEXT, &Transition::Marker(marker())).expect("possible");
    let row = &state.partitions[&key(0)];
    assert_eq!(row.batches, [batch(18, 19, 4, 7), batch(20, 29, 2, 2)]);
    assert_eq!(row.delivery_complete_count, 10 + 5);
}

#[test]
fn a_shared_row_is_copied_not_changed() {
    let mut state = before();
    let frozen = state.clone();
    for (transition, lsn) in all().into_iter().zip(NEXT..) {
        // Not all of them fit one history; what counts is what happens to the frozen rows.
        let _ = apply(&mut state, lsn, &transition);
    }
    assert_eq!(frozen, before());
    assert_ne!(state, frozen);
}

#[test]
fn touches_grows_with_the_rows_that_are_resident() {
    let full = before();
    let transition = Transition::Marker(marker());
    let mut cold = State::default();
    assert_eq!(touches(&cold, &transition), [RowId::Producer(PID)]);
    cold.producers.insert(PID, full.producers[&PID].clone());
    let rows = [partition(0), partition(1), RowId::Producer(PID)];
    assert_eq!(touches(&cold, &transition), rows);

    let transition = Transition::Delete { key: key(0) };
    let mut cold = State::default();
    assert_eq!(touches(&cold, &transition), [partition(0)]);
    cold.partitions.insert(key(0), full.partitions[&key(0)].clone());
    assert_eq!(touches(&cold, &transition), [partition(0), RowId::Producer(PID)]);
}

#[test]
fn a_write_needs_the_producers_of_dropped_acks_only() {
    let state = before();
    let below = Transition::Write(WriteTransition { start_offset: 29, ..write() });
    assert_eq!(touches(&state, &below), [partition(0)]);
    let beyond = Transition::Write(write());
    assert_eq!(touches(&state, &beyond), [partition(0), RowId::Producer(PID)]);
}

#[test]
fn reads_names_the_rows_that_a_decision_looks_at() {
    let summary = Command::Summary { key: key(0) };
    assert_eq!(reads(&summary), [partition(0)]);
    let stage = stage_command(0, vec![]);
    assert_eq!(reads(&stage), [partition(0), RowId::Producer(PID)]);
    let force = Command::ForceResolve { producer_id: PID, epoch: 0, outcome: Outcome::Abort };
    assert_eq!(reads(&force), [RowId::Producer(PID)]);
    let expire = Command::ExpireProducers { producer_ids: vec![8, 9] };
    assert_eq!(reads(&expire), [RowId::Producer(8), RowId::Producer(9)]);
}

#[test]
fn names_and_keys_of_transitions() {
    let names: Vec<_> = all().iter().map(Transition::name).collect();
    let expected = [
        "initialize",
        "write",
        "leader-epoch",
        "delete",
        "stage",
        "marker",
        "force-resolve",
        "expire-producers",
        "import",
    ];
    assert_eq!(names, expected);
    let keyless = ["marker", "force-resolve", "expire-producers"];
    for transition in all() {
        assert_eq!(transition.key().is_none(), keyless.contains(&transition.name()));
        let of_producer = ["stage", "marker", "force-resolve"].contains(&transition.name());
        assert_eq!(transition.producer_id(), of_producer.then_some(PID));
    }
}

#[test]
fn memory_is_estimated_by_what_a_row_holds() {
    let state = before();
    let row = &state.partitions[&key(0)];
    let mut more = Partition::clone(row);
    more.batches.extend((50..1_050).map(|i| batch(2 * i, 2 * i, 0, 1)));
    let per_batch = size_of::<StateBatch>();
    assert_eq!(more.approx_bytes() - row.approx_bytes(), 1_000 * per_batch);
    // A call that several ranges share is counted once.
    let mut twice = Partition::clone(row);
    twice.pending.push(twice.pending[0].clone());
    let grown = twice.approx_bytes() - row.approx_bytes();
    assert_eq!(grown, size_of_val(&twice.pending[0]));
    let idle = Producer::default().approx_bytes();
    assert!(state.producers[&PID].approx_bytes() > idle);
    assert_eq!(row.weight(), 3);
}
