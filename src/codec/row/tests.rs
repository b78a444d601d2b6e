#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing)]
use super::*;

fn call(lsn: u64) -> CallV1 {
    CallV1 {
        lsn,
        producer_id: 7,
        producer_epoch: 0,
        two_phase: false,
        transactional_id: "t".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 1,
        state_epoch: 0,
        leader_epoch: 0,
        stage_time_ms: 5,
    }
}

fn row(calls: &[u64], pending: &[u32]) -> Vec<u8> {
    let pending = (0..).zip(pending).map(|(offset, call)| PendingV1 {
        first_offset: offset,
        last_offset: offset,
        ack_type: 1,
        commit_target: 2,
        abort_target: 0,
        delivery_count: 1,
        call: *call,
    });
    let row = PartitionRowV1 {
        last_lsn: 9,
        state_epoch: 0,
        leader_epoch: 0,
        leader_fence: 0,
        start_offset: 0,
        init_start_offset: 0,
        delivery_complete_count: 0,
        snapshot_epoch: 0,
        create_time_ms: 1,
        write_time_ms: 2,
        batches: Vec::new(),
        calls: calls.iter().copied().map(call).collect(),
        pending: pending.collect(),
    };
    let mut bytes = vec![ROW_VERSION];
    encode_into(&row, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_partition_row_has_one_form_only() {
    for (calls, pending) in
        [(&[][..], &[][..]), (&[3], &[0]), (&[8, 3], &[0, 1, 0]), (&[3], &[0, 0])]
    {
        let bytes = row(calls, pending);
        let again = encode_partition(&decode_partition(&bytes).unwrap()).unwrap();
        assert_eq!(again, bytes);
    }
    for (what, calls, pending) in [
        ("a call that no ack refers to", &[3][..], &[][..]),
        ("the same behind one that is used", &[3, 4], &[0]),
        ("calls in another order", &[3, 4], &[1, 0]),
        ("a call twice", &[3, 3], &[0, 1]),
        ("a call that is not there", &[3], &[0, 1]),
    ] {
        let refused = decode_partition(&row(calls, pending));
        assert!(matches!(refused, Err(CodecError::Value { .. })), "{what}: {refused:?}");
    }
}

#[test]
fn a_row_of_another_version_is_newer_or_damaged() {
    let whole = row(&[3], &[0]);
    for (version, newer) in [(0, false), (1, true), (2, true), (255, true)] {
        let mut bytes = whole.clone();
        bytes[0] = version;
        match decode_partition(&bytes) {
            Ok(_) => assert_eq!(version, ROW_VERSION),
            Err(CodecError::NewerRow { version: found }) => assert!(newer && found == version),
            Err(error) => assert!(!newer, "version {version}: {error}"),
        }
    }
    assert!(matches!(decode_partition(&[]), Err(CodecError::Body(_))));
}

#[test]
fn a_producer_row_has_its_open_epochs_in_order_once() {
    let row = |epochs: &[i16]| {
        let open = epochs.iter().map(|epoch| OpenEpochV1 {
            epoch: *epoch,
            two_phase: false,
            superseded_by: None,
            keys: 1,
        });
        let row = ProducerRowV1 {
            last_lsn: 9,
            highest_stage_epoch: None,
            last_completed: None,
            coordinator_epoch: None,
            last_used_ms: 5,
            open: open.collect(),
        };
        let mut bytes = vec![ROW_VERSION];
        encode_into(&row, &mut bytes).unwrap();
        decode_producer(&bytes)
    };
    assert!(row(&[]).is_ok() && row(&[4, 5, 9]).is_ok());
    for epochs in [&[5, 4][..], &[4, 4], &[4, 9, 5]] {
        let refused = row(epochs);
        assert!(
            matches!(refused, Err(CodecError::Value { field: "open.epoch", .. })),
            "{epochs:?}"
        );
    }
}
