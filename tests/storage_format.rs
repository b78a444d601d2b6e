//! `storage-format.md` is true: its hex examples are what the encoders write, and its tables name
//! every kind, version and size.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sharestate::codec::{self, EntryKind};
use sharestate::engine::directory::{
    FORMAT_VERSION, Identity, SALVAGE_BYTES, STORE_BYTES, SalvageNote,
};
use sharestate::engine::repair::SALVAGE_STRETCH;
use sharestate::fsio::RealFs;
use sharestate::log::{
    self, Batch, ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, LogIdentity, LogOptions, Prepare,
    SEGMENT_HEADER_BYTES,
};
use sharestate::model::{
    AckRange, AckType, Completed, DeliveryState, ForceResolveTransition, MarkerTransition,
    OpenEpoch, Outcome, Partition, PendingAck, Producer, SharePartitionKey, StageCall,
    StageTransition, StateBatch, Transition, WriteTransition,
};
use uuid::Uuid;

const PAGE: &str = include_str!("../storage-format.md");

fn key() -> SharePartitionKey {
    let topic = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    SharePartitionKey::new("g1", topic, 7).expect("valid key")
}

fn batches() -> Vec<StateBatch> {
    vec![
        StateBatch {
            first_offset: 100,
            last_offset: 104,
            delivery_state: DeliveryState::ACKNOWLEDGED,
            delivery_count: 1,
        },
        StateBatch {
            first_offset: 105,
            last_offset: 105,
            delivery_state: DeliveryState::AVAILABLE,
            delivery_count: 2,
        },
    ]
}

fn partition() -> Partition {
    Partition {
        state_epoch: 3,
        leader_epoch: 4,
        leader_fence: 5,
        start_offset: 100,
        init_start_offset: 90,
        delivery_complete_count: 5,
        snapshot_epoch: 2,
        create_time_ms: 1_000,
        write_time_ms: 2_000,
        batches: batches(),
        pending: Vec::new(),
        last_lsn: 9,
    }
}

fn ack() -> AckRange {
    AckRange {
        first_offset: 106,
        last_offset: 107,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 1,
    }
}

fn partition_with_pending() -> Partition {
    let call = StageCall {
        lsn: 8,
        producer_id: 4_711,
        producer_epoch: 6,
        two_phase: true,
        transactional_id: "tx".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 11,
        state_epoch: 3,
        leader_epoch: 4,
        stage_time_ms: 1_500,
    };
    let ack = ack();
    let pending = PendingAck {
        first_offset: ack.first_offset,
        last_offset: ack.last_offset,
        ack_type: ack.ack_type,
        commit_target: ack.commit_target,
        abort_target: ack.abort_target,
        delivery_count: ack.delivery_count,
        call: Arc::new(call),
    };
    Partition { batches: Vec::new(), pending: vec![pending], ..partition() }
}

fn producer() -> Producer {
    let open = OpenEpoch { two_phase: true, superseded_by: Some(8), keys: [key()].into() };
    Producer {
        highest_stage_epoch: Some(8),
        last_completed: Some(Completed { epoch: 5, outcome: Outcome::Commit, operator: false }),
        coordinator_epoch: Some(2),
        open: [(6, open)].into(),
        last_used_ms: 1_500,
        last_lsn: 8,
    }
}

fn transitions() -> Vec<(&'static str, Transition)> {
    let marker = MarkerTransition {
        producer_id: 4_711,
        producer_epoch: 7,
        coordinator_epoch: 2,
        transaction_version: 2,
        outcome: Outcome::Commit,
        resolves: Some(6),
        completes: Some(7),
        time_ms: 1_600,
    };
    let resolve = ForceResolveTransition {
        producer_id: 4_711,
        epoch: 6,
        outcome: Outcome::Abort,
        completes: None,
        time_ms: 1_700,
    };
    let stage = StageTransition {
        key: key(),
        producer_id: 4_711,
        producer_epoch: 6,
        two_phase: true,
        transactional_id: "tx".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 11,
        state_epoch: 3,
        leader_epoch: 4,
        time_ms: 1_500,
        acks: vec![ack()],
    };
    let write = WriteTransition {
        key: key(),
        start_offset: 100,
        delivery_complete_count: 5,
        batches: batches(),
        time_ms: 2_000,
    };
    let partition = Box::new(Partition { last_lsn: 0, ..partition() });
    vec![
        ("initialize", {
            Transition::Initialize { key: key(), state_epoch: 3, start_offset: 90, time_ms: 1_000 }
        }),
        ("write", Transition::Write(write)),
        ("leader_epoch", Transition::LeaderEpoch { key: key(), leader_epoch: 4 }),
        ("delete", Transition::Delete { key: key() }),
        ("stage", Transition::Stage(stage)),
        ("marker", Transition::Marker(marker)),
        ("force_resolve", Transition::ForceResolve(resolve)),
        ("expire_producers", Transition::ExpireProducers { producer_ids: vec![1, 4_711] }),
        ("import", Transition::Import { key: key(), partition }),
    ]
}

/// A new log with one frame: two entries, a leader epoch and a deletion.
fn segment() -> Vec<u8> {
    let dir = tempfile::tempdir().expect("directory");
    let identity = LogIdentity { uuid: identity().uuid, incarnation: 1 };
    let options = LogOptions { segment_bytes: 4_096, relaxed: false, prepare: Prepare::Inline };
    let fs = Arc::new(RealFs);
    let mut log = log::create(fs, dir.path(), identity, options).expect("create");
    let mut batch = Batch::new(1);
    for (_, transition) in
        transitions().iter().filter(|(name, _)| ["leader_epoch", "delete"].contains(name))
    {
        let mut body = Vec::new();
        let (kind, version) = codec::encode_transition(transition, &mut body).expect("encode");
        batch.push(kind as u16, version, &body);
    }
    log.append(&batch).expect("append");
    log.sync().expect("sync");
    log.mark().expect("mark");
    drop(log);
    let path: PathBuf = dir.path().join(log::segment_file_name(1));
    std::fs::read(path).expect("read")
}

fn identity() -> Identity {
    Identity {
        uuid: Uuid::from_u128(0xaaaa_bbbb_cccc_4ddd_8eee_ffff_0000_1111),
        incarnation: 7,
        segment_bytes: 64 << 20,
    }
}

/// What every example must be, by name.
fn expected() -> BTreeMap<String, Vec<u8>> {
    let mut examples = BTreeMap::new();
    for (name, transition) in transitions() {
        let mut body = Vec::new();
        let (kind, version) = codec::encode_transition(&transition, &mut body).expect("encode");
        assert_eq!(codec::decode_transition(kind as u16, version, &body), Ok(transition));
        examples.insert(format!("body {name}"), body);
    }
    let row = codec::encode_partition(&partition()).expect("encode");
    assert_eq!(codec::decode_partition(&row).as_ref(), Ok(&partition()));
    examples.insert("row partition".to_owned(), row);
    let row = codec::encode_partition(&partition_with_pending()).expect("encode");
    assert_eq!(codec::decode_partition(&row).as_ref(), Ok(&partition_with_pending()));
    examples.insert("row partition pending".to_owned(), row);
    examples.insert("row producer".to_owned(), codec::encode_producer(&producer()).expect("row"));
    examples.insert("key partition".to_owned(), codec::encode_partition_key(&key()));
    let producer_key = codec::encode_producer_key(4_711, 6, &key());
    examples.insert("key producer_key".to_owned(), producer_key);
    examples.insert("store".to_owned(), identity().encode().to_vec());
    let next_lsn = SALVAGE_STRETCH;
    let note = SalvageNote { kept_lsn: 4_711, next_lsn, incarnation: 8, rebuild: true };
    examples.insert("salvage".to_owned(), note.encode());
    let segment = segment();
    let frames = segment.iter().rposition(|byte| *byte != 0).expect("frames").next_multiple_of(8);
    examples.insert("segment header".to_owned(), segment[..SEGMENT_HEADER_BYTES].to_vec());
    examples.insert("frames".to_owned(), segment[SEGMENT_HEADER_BYTES..frames].to_vec());
    examples
}

/// The examples of the page: blocks fenced as `hex NAME`, bytes in hex, `#` starts a remark.
fn on_page() -> BTreeMap<String, Vec<u8>> {
    let mut examples = BTreeMap::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("```hex ") else { continue };
        let digits: String = lines
            .by_ref()
            .take_while(|line| *line != "```")
            .flat_map(|line| line.split('#').next().unwrap_or_default().chars())
            .filter(|character| !character.is_whitespace())
            .collect();
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits"))
            .collect();
        assert!(examples.insert(name.to_owned(), bytes).is_none(), "`{name}` stands twice");
    }
    examples
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes
        .chunks(32)
        .map(|chunk| chunk.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_example_is_what_the_encoders_write_and_none_is_missing() {
    let (expected, found) = (expected(), on_page());
    let mut wrong = Vec::new();
    for (name, bytes) in &expected {
        if found.get(name) != Some(bytes) {
            wrong.push(format!("```hex {name}\n{}\n```", hex(bytes)));
        }
    }
    assert!(wrong.is_empty(), "the page should say:\n{}", wrong.join("\n"));
    let extra: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(extra.is_empty(), "nobody checks {extra:?}");
    println!("format-examples={}", expected.len());
}

#[test]
fn the_page_names_every_kind_number_and_size() {
    let has = |text: String| assert!(PAGE.contains(&text), "the page lacks `{text}`");
    for (name, transition) in transitions() {
        has(format!("| {} | {name} | 1 |", EntryKind::of(&transition) as u16));
    }
    assert_eq!(EntryKind::from_number(0), None);
    assert_eq!(EntryKind::from_number(transitions().len() as u16 + 1), None, "a kind is missing");
    has(format!("Format version: **{FORMAT_VERSION}**"));
    has(format!("`STORE` ({STORE_BYTES} bytes)"));
    has(format!("`SALVAGE` ({SALVAGE_BYTES} bytes)"));
    has(format!("a multiple of {SALVAGE_STRETCH}"));
    has(format!("Segment header ({SEGMENT_HEADER_BYTES} bytes)"));
    has(format!("Frame header ({FRAME_HEADER_BYTES} bytes)"));
    has(format!("Entry header ({ENTRY_HEADER_BYTES} bytes)"));
    has(format!("{} bytes with its header", sharestate::limits::ENTRY_BYTES_MAX));
    has(format!("{} bytes with its header", sharestate::limits::FRAME_BYTES_MAX));
}
