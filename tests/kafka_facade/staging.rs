//! `TxnShareAcknowledge`.

use sharestate::kafka::AcknowledgementBatch;

use crate::support::*;

fn staged(persister: &sharestate::kafka::Persister, batches: Vec<AcknowledgementBatch>) -> i16 {
    codes(&run(persister.txn_share_acknowledge(stage(vec![(0, batches)]))))[0]
}

#[test]
fn one_ack_type_is_for_all_offsets_and_many_are_for_one_each() {
    let persister = started(&[0]);
    let batches = vec![acks(0, 4, &[1]), acks(10, 15, &[1, 1, 0, 3, 3, 1]), acks(20, 20, &[3])];
    assert_eq!(staged(&persister, batches), 0);
    let read = read(&persister, 0, true);
    let told: Vec<_> = read
        .state_batches
        .iter()
        .map(|b| (b.first_offset, b.last_offset, b.staged.expect("pending").ack_type as i8))
        .collect();
    let expected = [(0, 4, 1), (10, 11, 1), (12, 12, 0), (13, 14, 3), (15, 15, 1), (20, 20, 3)];
    assert_eq!(told, expected);
}

#[test]
fn malformed_ack_types_are_refused() {
    let persister = started(&[0]);
    let cases = [
        acks(0, 4, &[]),
        acks(0, 4, &[1, 1]),
        acks(0, 4, &[1; 6]),
        acks(0, 4, &[5]),
        acks(0, 4, &[-1]),
        acks(0, 1, &[1, 7]),
        acks(0, 4, &[2]),
        acks(0, 4, &[4]),
        acks(0, 1, &[1, 2]),
        acks(4, 0, &[1]),
        acks(i64::MIN, i64::MAX, &[1, 1]),
        acks(i64::MAX - 1, i64::MAX, &[1, 3]),
        acks(0, -1, &[]),
    ];
    let count = cases.len();
    for case in cases {
        let batches = vec![acks(100, 100, &[1]), case.clone()];
        assert_eq!(staged(&persister, batches), 42, "{case:?}");
        assert_eq!(shown(&read(&persister, 0, true)), [], "{case:?}: all or nothing");
    }
    println!("malformed-requests={count} staged=0");
}

#[test]
fn each_partition_is_all_or_nothing_and_stands_for_itself() {
    let persister = started(&[0, 1]);
    assert_codes(&run(persister.write_state(group(vec![write(1, vec![batch(3, 3, 2, 1)])]))), &[0]);
    let good = || vec![acks(0, 1, &[1]), acks(5, 6, &[3])];
    let bad = vec![acks(0, 1, &[1]), acks(3, 3, &[1])];
    let request = stage(vec![(0, good()), (1, bad), (2, good())]);
    let results = run(persister.txn_share_acknowledge(request.clone()));
    assert_codes(&results, &[0, 121, 42]);
    assert_eq!(shown(&read(&persister, 0, true)), [(0, 1, 5, 1), (5, 6, 5, 1)]);
    assert_eq!(shown(&read(&persister, 1, true)), [(3, 3, 2, 1)]);
    // A repeated call is a success where it was one (S-16).
    assert_codes(&run(persister.txn_share_acknowledge(request)), &[0, 121, 42]);
}

#[test]
fn what_the_request_says_of_the_transaction_reaches_the_store() {
    let persister = started(&[0]);
    let mut request = stage(vec![(0, vec![acks(0, 1, &[1])])]);
    (request.two_phase, request.producer_epoch) = (true, 4);
    assert_codes(&run(persister.txn_share_acknowledge(request.clone())), &[0]);
    let row = run(persister.store().list(None, None, 1)).expect("list").partitions.remove(0).1;
    let call = &row.pending[0].call;
    assert_eq!((call.producer_id, call.producer_epoch, call.two_phase), (7, 4, true));
    assert_eq!((&*call.transactional_id, &*call.member_id), ("payments", "consumer"));
    assert_eq!((call.member_epoch, call.state_epoch, call.leader_epoch), (3, 1, 0));

    request.transaction_version = 1;
    assert_codes(&run(persister.txn_share_acknowledge(request.clone())), &[35]);
    (request.transaction_version, request.producer_epoch) = (2, 3);
    assert_codes(&run(persister.txn_share_acknowledge(request.clone())), &[47]);
    request.producer_epoch = 4;
    request.topics[0].partitions[0].state_epoch = 2;
    assert_codes(&run(persister.txn_share_acknowledge(request)), &[124]);
}

#[test]
fn more_ranges_than_a_call_may_have_are_refused() {
    let persister = started(&[0]);
    let types: Vec<i8> = (0..70_000).map(|n| if n % 2 == 0 { 1 } else { 3 }).collect();
    assert_eq!(staged(&persister, vec![acks(0, 69_999, &types)]), 42);
    let types = &types[..30_000];
    assert_eq!(staged(&persister, vec![acks(0, 29_999, types)]), 0);
    assert_eq!(read(&persister, 0, true).state_batches.len(), 30_000);
}
