//! The rows and row keys of the snapshot. The first byte says what the rest is: bytes to decode as
//! one of them, or what a row is built from that must come back.

use sharestate::codec::{
    decode_partition, decode_partition_key, decode_producer, decode_producer_key, encode_partition,
    encode_partition_key, encode_producer, encode_producer_key,
};
use sharestate::model::Producer;
use sharestate::snapshot::{Family, MemoryRows, RowOp, RowStore, Snapshot};
use uuid::Uuid;

use super::draw::Draw;

pub fn run(input: &[u8]) {
    let Some((mode, bytes)) = input.split_first() else { return };
    match mode % 8 {
        0 => partition_row(bytes),
        1 => producer_row(bytes),
        2 => keys(bytes),
        3 => drop(partition_round_trip(bytes)),
        4 => drop(producer_round_trip(bytes)),
        5 => drop(keys_round_trip(bytes)),
        _ => whole_snapshot(bytes),
    }
}

/// What decodes encodes to the same bytes; a longer or shorter row means nothing.
fn partition_row(bytes: &[u8]) {
    let Ok(row) = decode_partition(bytes) else { return };
    let mut again = encode_partition(&row).expect("what decodes encodes");
    assert_eq!(again, bytes, "{row:?}");
    again.push(0);
    assert!(decode_partition(&again).is_err(), "a trailing byte of {row:?}");
    assert!(decode_partition(&bytes[..bytes.len() - 1]).is_err(), "a missing byte of {row:?}");
}

fn producer_row(bytes: &[u8]) {
    let Ok(row) = decode_producer(bytes) else { return };
    assert!(row.producer.open.keys().eq(row.keys.keys()));
    assert!(row.producer.open.values().all(|open| open.keys.is_empty()));
    // Its share partitions are rows of their own; their number is at the end of each open epoch.
    let mut again = encode_producer(&row.producer).expect("what decodes encodes");
    let mut counted = again.clone();
    let ends = (0..row.keys.len()).rev().scan(again.len(), |end, index| {
        let epoch = *row.keys.keys().nth(index).expect("in range");
        let at = *end - 4;
        let superseded = row.producer.open[&epoch].superseded_by;
        *end -= 2 + 1 + if superseded.is_some() { 3 } else { 1 } + 4;
        Some((at, row.keys[&epoch]))
    });
    for (at, count) in ends {
        counted[at..at + 4].copy_from_slice(&count.to_le_bytes());
    }
    assert_eq!(counted, bytes, "{row:?}");
    again.push(0);
    assert!(decode_producer(&again).is_err(), "a trailing byte of {row:?}");
    assert!(decode_producer(&bytes[..bytes.len() - 1]).is_err(), "a missing byte of {row:?}");
}

fn keys(bytes: &[u8]) {
    if let Ok(key) = decode_partition_key(bytes) {
        assert_eq!(encode_partition_key(&key), bytes, "{key}");
    }
    if let Ok((id, epoch, key)) = decode_producer_key(bytes) {
        assert_eq!(encode_producer_key(id, epoch, &key), bytes, "{id} {epoch} {key}");
    }
}

fn partition_round_trip(input: &[u8]) -> arbitrary::Result<()> {
    let mut draw = Draw::new(input);
    let row = draw.row(true)?;
    let mut bytes = encode_partition(&row).expect("can be written");
    assert_eq!(decode_partition(&bytes).as_ref(), Ok(&row));
    partition_row(&bytes);
    exchange_calls(&mut bytes, row.pending.len(), &mut draw)?;
    partition_row(&bytes);
    Ok(())
}

/// Pending acks are the end of a row, the index of its call the end of each: other indexes come out
/// of a mutation too seldom.
fn exchange_calls(row: &mut [u8], acks: usize, draw: &mut Draw) -> arbitrary::Result<()> {
    const ACK_BYTES: usize = 25;
    for ack in row.rchunks_exact_mut(ACK_BYTES).take(acks) {
        let call = u32::from(draw.below(4)?);
        ack[ACK_BYTES - 4..].copy_from_slice(&call.to_le_bytes());
    }
    Ok(())
}

fn producer_round_trip(input: &[u8]) -> arbitrary::Result<()> {
    let producer = Draw::new(input).producer()?;
    let bytes = encode_producer(&producer).expect("can be written");
    let row = decode_producer(&bytes).expect("what was written reads");
    for (epoch, open) in &producer.open {
        assert_eq!(row.keys[epoch] as usize, open.keys.len());
    }
    let mut bare: Producer = producer;
    bare.open.values_mut().for_each(|open| open.keys.clear());
    assert_eq!(row.producer, bare);
    producer_row(&bytes);
    Ok(())
}

/// Row keys come back, and sort as the keys themselves do.
fn keys_round_trip(input: &[u8]) -> arbitrary::Result<()> {
    let mut draw = Draw::new(input);
    let (a, b) = (draw.key()?, draw.key()?);
    let (row_a, row_b) = (encode_partition_key(&a), encode_partition_key(&b));
    assert_eq!(decode_partition_key(&row_a).as_ref(), Ok(&a));
    assert_eq!(row_a.cmp(&row_b), a.cmp(&b), "{a} {b}");
    assert!(a == b || !row_a.starts_with(&row_b) && !row_b.starts_with(&row_a), "{a} {b}");
    let (id, epoch) = draw.any()?;
    let row = encode_producer_key(id, epoch, &a);
    assert_eq!(decode_producer_key(&row), Ok((id, epoch, a)));
    Ok(())
}

/// Any rows in any family: everything that reads them answers, and never takes a row for one of
/// another key.
fn whole_snapshot(mut input: &[u8]) {
    const STORE: Uuid = Uuid::from_u128(9);
    let rows = MemoryRows::default();
    Snapshot::create(Box::new(rows.clone()), STORE).expect("empty rows");
    let mut ops = Vec::new();
    while let [family, key_bytes, value_bytes, rest @ ..] = input {
        let family = Family::ALL[usize::from(*family) % 4];
        let (key, rest) = rest.split_at(rest.len().min((*key_bytes).into()));
        let (value, rest) = rest.split_at(rest.len().min((*value_bytes).into()));
        ops.push(RowOp::put(family, key.to_vec(), value.to_vec()));
        input = rest;
    }
    rows.write(ops).expect("memory");
    let Ok(snapshot) = Snapshot::open(Box::new(rows), STORE) else { return };
    for (key, row) in snapshot.partitions(None, None, usize::MAX).into_iter().flatten() {
        assert_eq!(snapshot.partition(&key).expect("was read before"), Some(row));
    }
    for (id, row) in snapshot.producers(None, usize::MAX).into_iter().flatten() {
        assert_eq!(snapshot.producer(id).expect("was read before"), Some(row));
    }
}
