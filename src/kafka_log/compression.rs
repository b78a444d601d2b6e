//! Inflating compressed batches within a bound.
//!
//! The decompressors of `kafka-protocol` write all they produce into memory. So the framing of
//! snappy, lz4 and zstd is walked first, which tells how much can come out: exactly for snappy, as
//! an upper bound for the others. gzip has no framing, and its trailer can lie; it is inflated
//! here, up to the length that the trailer states and not a byte further.

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use kafka_protocol::compression::{Decompressor, Lz4, Snappy, Zstd};

use super::error::KafkaLogErrorKind;

/// The most that a batch may inflate to. Kafka's own bound on a compressed batch is about 1 MiB
/// unless raised.
pub(super) const INFLATED_BYTES_MAX: u64 = 16 << 20;

/// No deflate stream inflates to more than this many times its size.
const DEFLATE_RATIO_MAX: u64 = 1_032;

/// A compression codec of Kafka's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Undoes the compression with codec number `codec`, which is not 0.
pub(super) fn inflate(codec: i16, payload: &[u8]) -> Result<Bytes, KafkaLogErrorKind> {
    let (codec, name) = match codec {
        1 => (Codec::Gzip, "gzip"),
        2 => (Codec::Snappy, "snappy"),
        3 => (Codec::Lz4, "lz4"),
        4 => (Codec::Zstd, "zstd"),
        found => return Err(KafkaLogErrorKind::Codec { found }),
    };
    let bad = |reason: Box<str>| KafkaLogErrorKind::Inflate { codec: name, reason };
    let found = match codec {
        Codec::Gzip => gzip_size(payload),
        Codec::Snappy => snappy_size(payload),
        Codec::Lz4 => lz4_size(payload),
        Codec::Zstd => zstd_size(payload),
    };
    let found = found.ok_or_else(|| bad("its framing is broken".into()))?;
    if found > INFLATED_BYTES_MAX {
        return Err(KafkaLogErrorKind::InflatedSize {
            codec: name,
            found,
            bound: INFLATED_BYTES_MAX,
        });
    }
    let mut input = payload;
    let inflated = match codec {
        Codec::Gzip => return gunzip(payload, found).map_err(bad),
        Codec::Snappy => Snappy::decompress(&mut input, |out: &mut Bytes| Ok(std::mem::take(out))),
        Codec::Lz4 => Lz4::decompress(&mut input, |out: &mut Bytes| Ok(std::mem::take(out))),
        Codec::Zstd => Zstd::decompress(&mut input, |out: &mut Bytes| Ok(std::mem::take(out))),
    };
    inflated.map_err(|error| bad(format!("{error:#}").into()))
}

/// Inflates one gzip member that fills `payload` and comes to exactly `size` bytes.
fn gunzip(payload: &[u8], size: u64) -> Result<Bytes, Box<str>> {
    let most = DEFLATE_RATIO_MAX.saturating_mul(payload.len() as u64);
    if size > most {
        return Err(format!("it cannot come to the {size} bytes that its trailer states").into());
    }
    let mut out = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let mut inflated = GzDecoder::new(payload).take(size);
    inflated.read_to_end(&mut out).map_err(|error| error.to_string())?;
    let mut decoder = inflated.into_inner();
    // At the end of the member the decoder compares checksum and length with the trailer.
    if decoder.read(&mut [0]).map_err(|error| error.to_string())? != 0 {
        return Err("it is longer than its trailer states".into());
    }
    match decoder.into_inner().len() {
        0 => Ok(out.into()),
        left => Err(format!("{left} bytes are left behind it").into()),
    }
}

/// The length that the trailer states.
fn gzip_size(payload: &[u8]) -> Option<u64> {
    payload.last_chunk().map(|size| u64::from(u32::from_le_bytes(*size)))
}

/// Snappy in the framing of snappy-java (magic, then blocks with a big-endian length), or one bare
/// block. A block begins with its inflated length.
fn snappy_size(payload: &[u8]) -> Option<u64> {
    const MAGIC: &[u8; 16] = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01";
    let Some(mut blocks) = payload.strip_prefix(MAGIC) else { return snappy_block(payload) };
    let mut total = 0_u64;
    while !blocks.is_empty() {
        let (size, rest) = blocks.split_first_chunk()?;
        let (block, rest) = rest.split_at_checked(u32::from_be_bytes(*size).try_into().ok()?)?;
        total = total.checked_add(snappy_block(block)?)?;
        blocks = rest;
    }
    Some(total)
}

fn snappy_block(block: &[u8]) -> Option<u64> {
    super::raw::Reader::new(block).unsigned_varint("snappy length").ok().map(u64::from)
}

/// One lz4 frame: descriptor, then blocks with a little-endian length, then a zero length. No block
/// inflates to more than the descriptor's block size, and none by more than 255 times.
fn lz4_size(payload: &[u8]) -> Option<u64> {
    let rest = payload.strip_prefix(&0x184d_2204_u32.to_le_bytes())?;
    let ([flags, block_size], mut rest) = rest.split_first_chunk()?;
    let block_max = 1_u64.checked_shl(match block_size >> 4 {
        4 => 16,
        5 => 18,
        6 => 20,
        7 => 22,
        _ => return None,
    })?;
    let has = |bit: u8| flags & bit != 0;
    let content_size = if has(0b1000) { 8 } else { 0 };
    let dictionary_id = if has(0b1) { 4 } else { 0 };
    let block_checksum = if has(0b1_0000) { 4 } else { 0 };
    rest = rest.get(content_size..)?.get(dictionary_id..)?.get(1..)?;
    let mut total = 0_u64;
    loop {
        let (size, after) = rest.split_first_chunk()?;
        let size = u32::from_le_bytes(*size);
        if size == 0 {
            let content_checksum = if has(0b100) { 4 } else { 0 };
            return (after.len() == content_checksum).then_some(total);
        }
        let stored = size & 0x7fff_ffff;
        let most = u64::from(stored).saturating_mul(if stored == size { 255 } else { 1 });
        total = total.checked_add(most.min(block_max))?;
        rest = after.get(usize::try_from(stored).ok()?..)?.get(block_checksum..)?;
    }
}

/// zstd frames: header, then blocks with a 3-byte header, the last one marked. A block inflates to
/// at most 128 KiB.
fn zstd_size(payload: &[u8]) -> Option<u64> {
    const BLOCK_MAX: u64 = 128 << 10;
    let mut total = 0_u64;
    let mut rest = payload;
    while !rest.is_empty() {
        rest = rest.strip_prefix(&0xfd2f_b528_u32.to_le_bytes())?;
        let ([flags], after) = rest.split_first_chunk()?;
        let single_segment = flags & 0b10_0000 != 0;
        let window = if single_segment { 0 } else { 1 };
        let dictionary_id = [0, 1, 2, 4].get(usize::from(flags & 0b11)).copied()?;
        let content_size = match flags >> 6 {
            0 if single_segment => 1,
            0 => 0,
            1 => 2,
            2 => 4,
            _ => 8,
        };
        rest = after.get(window..)?.get(dictionary_id..)?.get(content_size..)?;
        loop {
            let ([a, b, c], after) = rest.split_first_chunk()?;
            let header = u32::from_le_bytes([*a, *b, *c, 0]);
            let size = header >> 3;
            let (stored, most) = match (header >> 1) & 0b11 {
                0 => (size, u64::from(size)),
                1 => (1, u64::from(size)),
                2 => (size, BLOCK_MAX),
                _ => return None,
            };
            total = total.checked_add(most)?;
            rest = after.get(usize::try_from(stored).ok()?..)?;
            if header & 1 == 1 {
                break;
            }
        }
        let checksum = if flags & 0b100 != 0 { 4 } else { 0 };
        rest = rest.get(checksum..)?;
    }
    Some(total)
}
