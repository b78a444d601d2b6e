//! Row keys: big endian, prefix-free, and in the order of the keys themselves, so that a scan of
//! the snapshot and a walk over memory can be merged.
//!
//! A group id is written with every byte 0x00 as 0x00 0xFF and ends in 0x00 0x01; then the topic id
//! (16 bytes) and the partition index (`u32`).

use uuid::Uuid;

use super::CodecError;
use crate::model::SharePartitionKey;

const ESCAPE: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
const END: u8 = 0x01;

/// Prefix of all rows of a group.
#[must_use]
pub fn encode_group_prefix(group_id: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(group_id.len().saturating_add(2));
    push_group(group_id, &mut out);
    out
}

fn push_group(group_id: &str, out: &mut Vec<u8>) {
    for byte in group_id.bytes() {
        out.push(byte);
        if byte == ESCAPE {
            out.push(ESCAPED_ZERO);
        }
    }
    out.extend([ESCAPE, END]);
}

/// Row key of a share partition in column family `partition`.
#[must_use]
pub fn encode_partition_key(key: &SharePartitionKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.group_id().len().saturating_add(22));
    push_partition_key(key, &mut out);
    out
}

fn push_partition_key(key: &SharePartitionKey, out: &mut Vec<u8>) {
    push_group(key.group_id(), out);
    out.extend_from_slice(key.topic_id().as_bytes());
    out.extend_from_slice(&key.partition().to_be_bytes());
}

/// Reads back what [`encode_partition_key`] wrote.
///
/// # Errors
/// [`CodecError`] when the bytes are not such a key.
pub fn decode_partition_key(bytes: &[u8]) -> Result<SharePartitionKey, CodecError> {
    let malformed = || CodecError::Body("not a share partition row key".to_owned());
    let mut group = Vec::new();
    let mut rest = bytes.iter();
    loop {
        match *rest.next().ok_or_else(malformed)? {
            ESCAPE => match *rest.next().ok_or_else(malformed)? {
                ESCAPED_ZERO => group.push(ESCAPE),
                END => break,
                _ => return Err(malformed()),
            },
            byte => group.push(byte),
        }
    }
    let (topic, partition) = rest.as_slice().split_first_chunk::<16>().ok_or_else(malformed)?;
    let partition = i32::from_be_bytes(partition.try_into().map_err(|_| malformed())?);
    let group = String::from_utf8(group).map_err(|_| malformed())?;
    Ok(SharePartitionKey::new(group, Uuid::from_bytes(*topic), partition)?)
}

/// Row key of a producer in column family `producer`, and prefix of its rows in `producer_key`.
/// Producer ids are never negative.
#[must_use]
pub fn encode_producer_id(producer_id: i64) -> [u8; 8] {
    producer_id.to_be_bytes()
}

/// Row key in column family `producer_key`: producer id, epoch, share partition.
#[must_use]
pub fn encode_producer_key(producer_id: i64, epoch: i16, key: &SharePartitionKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.group_id().len().saturating_add(32));
    out.extend_from_slice(&producer_id.to_be_bytes());
    out.extend_from_slice(&epoch.to_be_bytes());
    push_partition_key(key, &mut out);
    out
}

/// Reads back what [`encode_producer_key`] wrote.
///
/// # Errors
/// [`CodecError`] when the bytes are not such a key.
pub fn decode_producer_key(bytes: &[u8]) -> Result<(i64, i16, SharePartitionKey), CodecError> {
    let malformed = || CodecError::Body("not a producer key row key".to_owned());
    let (producer_id, rest) = bytes.split_first_chunk::<8>().ok_or_else(malformed)?;
    let (epoch, rest) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
    let key = decode_partition_key(rest)?;
    Ok((i64::from_be_bytes(*producer_id), i16::from_be_bytes(*epoch), key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(group: &str, topic: u128, partition: i32) -> SharePartitionKey {
        SharePartitionKey::new(group, Uuid::from_u128(topic), partition).unwrap()
    }

    #[test]
    fn row_keys_sort_as_their_keys_do_and_none_is_a_prefix_of_another() {
        let groups = ["a", "a\0", "a\0b", "a\u{1}", "ab", "b", "\0", "\0\0", "\u{7f}", "é"];
        let mut keys: Vec<_> = groups
            .iter()
            .flat_map(|g| [key(g, 1, 0), key(g, 1, 255), key(g, 1, 256), key(g, u128::MAX, 0)])
            .collect();
        keys.sort();
        let rows: Vec<_> = keys.iter().map(encode_partition_key).collect();
        assert!(rows.is_sorted());
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(decode_partition_key(row).unwrap(), keys[at]);
            assert!(rows.iter().enumerate().all(|(b, other)| b == at || !other.starts_with(row)));
        }
    }

    #[test]
    fn a_groups_prefix_begins_its_own_row_keys_and_no_others() {
        let groups = ["a", "a\0", "a\0b", "ab", "b", "\0"];
        for group in groups {
            let prefix = encode_group_prefix(group);
            for other in groups {
                let row = encode_partition_key(&key(other, 1, 0));
                assert_eq!(row.starts_with(&prefix), other == group, "{group:?} {other:?}");
            }
        }
    }

    #[test]
    fn producer_rows_round_trip_and_share_the_producers_prefix() {
        let row = encode_producer_key(77, 32_766, &key("g\0:x", 5, i32::MAX));
        assert!(row.starts_with(&encode_producer_id(77)));
        assert_eq!(decode_producer_key(&row).unwrap(), (77, 32_766, key("g\0:x", 5, i32::MAX)));
    }

    #[test]
    fn damaged_row_keys_are_errors() {
        let row = encode_partition_key(&key("group", 5, 3));
        for cut in 0..row.len() {
            assert!(decode_partition_key(&row[..cut]).is_err(), "cut at {cut}");
        }
        let mut longer = row.clone();
        longer.push(0);
        assert!(decode_partition_key(&longer).is_err());
        assert!(decode_partition_key(&[b'g', 0, 7]).is_err());
    }
}
