//! O: what operators see and do.

use super::*;

const HOUR_MS: i64 = 3_600_000;

#[test]
fn o_1_the_abort_of_a_transaction_that_timed_out_frees_its_acks() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.clock.advance(HOUR_MS); // far above any transaction timeout
    assert_eq!(store.pending(0), [(0, 0)]);
    store.resolves(abort(0), &[(0, &[(0, 0)])]);
    assert_eq!(store.records(0), [batch(0, 0, 0, 1)]);
}

#[test]
fn o_2_a_two_phase_transaction_of_a_dead_producer_stays_until_an_operator_ends_it() {
    let mut store = Store::started();
    store.stages(two_phase(stage([accept(0, 4)])));
    store.clock.advance(90 * 24 * HOUR_MS);
    store.checkpoint();
    store.kill_and_open();
    assert_eq!(store.listed()[0].age_ms(1_000 + 90 * 24 * HOUR_MS), 90 * 24 * HOUR_MS);
    let resolved = store.blocking().force_resolve(PID, 0, Commit).expect("ended by hand");
    assert_eq!(resolved.partitions, [(key(0), vec![(0, 4)])]);
    store.kill_and_open();
    assert_eq!(store.records(0), [batch(0, 4, 2, 1)]);
    let last = store.producer().last_completed.expect("remembered");
    assert_eq!((last.epoch, last.outcome, last.operator), (1, Commit, true));
    store.refuses(two_phase(stage([accept(5, 5)])), INVALID_PRODUCER_EPOCH);
    assert!(!store.resolves_nothing(commit(0)).contradicts, "its own marker is a repeat");
}

#[test]
fn o_3_acks_whose_marker_was_dropped_are_listed_as_orphans_and_only_their_own_end_resolves_them() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.stages(at(1, stage([accept(1, 1)]))); // the coordinator went on without its marker
    let orphaned = |store: &Store| -> Vec<_> {
        store.listed().iter().map(|entry| (entry.producer_epoch, entry.orphaned)).collect()
    };
    assert_eq!(orphaned(&store), [(0, true), (1, false)]);
    assert_eq!(store.blocking().pending_totals().expect("totals").orphaned_epochs, 1);
    let resolved = store.takes(commit(1));
    assert!(resolved.orphans, "the answer says that something stays behind");
    assert_eq!(store.pending(0), [(0, 0)]);
    store.kill_and_open();
    assert_eq!(orphaned(&store), [(0, true)]);
    store.resolves(abort(0), &[(0, &[(0, 0)])]); // it was still travelling
    let last = store.producer().last_completed.map(|last| last.epoch);
    assert_eq!(last, Some(2), "and does not bring the producer back");
}

#[test]
fn o_3_an_operator_ends_an_orphan_by_hand() {
    let store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.stages(at(1, stage([accept(1, 1)])));
    let error = store.blocking().force_resolve(PID, 2, Abort).expect_err("not open");
    assert_eq!(error.kafka_code(), None);
    store.blocking().force_resolve(PID, 0, Abort).expect("ended by hand");
    assert_eq!((store.records(0), store.pending(0)), (vec![batch(0, 0, 0, 1)], vec![(1, 1)]));
    store.resolves_nothing(commit(0));
    store.resolves(commit(1), &[(0, &[(1, 1)])]);
}

#[test]
fn o_4_kafkas_tool_aborts_with_the_epoch_as_it_is_and_the_transaction_may_go_on() {
    let mut store = Store::started();
    store.stages(at(4, stage([accept(0, 4)])));
    let tools = Marker { transaction_version: 0, ..marker(4, Abort) };
    store.resolves(tools, &[(0, &[(0, 4)])]);
    store.kill_and_open();
    assert_eq!(store.records(0), [batch(0, 4, 0, 1)]);
    assert_eq!(store.producer().last_completed, None);
    assert_eq!(store.stages(at(4, stage([accept(7, 7)]))), [(7, 7)]);
    store.resolves_nothing(Marker { outcome: Commit, ..tools }); // the tool cannot commit so
    store.resolves(commit(4), &[(0, &[(7, 7)])]);
}

#[test]
fn o_5_hanging_acks_are_listed_with_all_that_an_operator_needs() {
    let mut store = Store::started();
    store.stages(at(3, stage([accept(0, 4), reject(6, 6)])));
    store.clock.advance(HOUR_MS);
    store.stages(of(200, on(1, stage([accept(2, 2)]))));
    store.takes(Marker { coordinator_epoch: 9, ..marker(1, Commit) });
    store.checkpoint();
    store.kill_and_open();
    let listed = store.listed();
    let [entry, younger] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((&entry.key, entry.producer_id, entry.producer_epoch), (&key(0), PID, 3));
    assert_eq!((entry.acks.len(), entry.offsets(), entry.start_offset), (2, 6, 0));
    assert_eq!((&*entry.oldest.transactional_id, &*entry.oldest.member_id), ("orders", "member"));
    assert_eq!((entry.coordinator_epoch, entry.holds_start_offset), (Some(9), true));
    assert_eq!(entry.oldest.stage_time_ms + HOUR_MS, younger.oldest.stage_time_ms);

    let filtered = |change: &dyn Fn(&mut PendingFilter)| -> Vec<i64> {
        let mut filter = PendingFilter::default();
        change(&mut filter);
        let entries = store.blocking().pending(filter).expect("listed");
        entries.iter().map(|entry| entry.producer_id).collect()
    };
    assert_eq!(filtered(&|filter| filter.staged_until_ms = Some(1_000)), [PID]);
    assert_eq!(filtered(&|filter| filter.producer_id = Some(200)), [200]);
    let prefix = |prefix: &str| Some(prefix.to_owned());
    assert_eq!(filtered(&|filter| filter.transactional_id_prefix = prefix("ord")), [PID, 200]);
    assert!(filtered(&|filter| filter.transactional_id_prefix = prefix("x")).is_empty());
    assert!(filtered(&|filter| filter.group_id = prefix("grou")).is_empty());
    assert_eq!(filtered(&|filter| filter.topic_id = Some(Uuid::from_u128(1))), [PID, 200]);
    assert!(filtered(&|filter| filter.topic_id = Some(Uuid::from_u128(2))).is_empty());
    assert!(filtered(&|filter| filter.orphaned = Some(true)).is_empty());
    let totals = store.blocking().pending_totals().expect("totals");
    assert_eq!((totals.producers, totals.partitions, totals.ranges), (2, 2, 3));
    assert_eq!((totals.offsets, totals.held_start_offsets), (7, 1));
    assert_eq!(totals.oldest_ms, Some(1_000));
}

#[test]
fn o_6_a_marker_that_comes_days_later_still_resolves() {
    let mut store = Store::started();
    store.stages(stage([accept(0, 0)]));
    store.clock.advance(10 * 24 * HOUR_MS); // far above the expiry of producers
    let expire = Command::ExpireProducers { producer_ids: vec![PID] };
    store.blocking().execute(expire).expect("looked for");
    store.checkpoint();
    store.kill_and_open();
    store.resolves(commit(0), &[(0, &[(0, 0)])]);
}
