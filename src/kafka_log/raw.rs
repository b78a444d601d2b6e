//! Kafka's primitive types: a reader that never passes its end, and the writers that mirror it.
//!
//! Numbers are big-endian; a varint is LEB128, zigzag-encoded where it is signed.

use super::error::KafkaLogErrorKind;

/// The unread rest of a batch, record, key or value.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `size` bytes.
    pub(super) fn take(
        &mut self,
        size: usize,
        field: &'static str,
    ) -> Result<&'a [u8], KafkaLogErrorKind> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or_else(|| {
            let (expected, found) = (size as u64, self.rest.len() as u64);
            KafkaLogErrorKind::Short { field, expected, found }
        })?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], KafkaLogErrorKind> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| {
            let (expected, found) = (N as u64, self.rest.len() as u64);
            KafkaLogErrorKind::Short { field, expected, found }
        })?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn i8(&mut self, field: &'static str) -> Result<i8, KafkaLogErrorKind> {
        self.array(field).map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self, field: &'static str) -> Result<i16, KafkaLogErrorKind> {
        self.array(field).map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self, field: &'static str) -> Result<i32, KafkaLogErrorKind> {
        self.array(field).map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, KafkaLogErrorKind> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(super) fn i64(&mut self, field: &'static str) -> Result<i64, KafkaLogErrorKind> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub(super) fn unsigned_varint(
        &mut self,
        field: &'static str,
    ) -> Result<u32, KafkaLogErrorKind> {
        let value = self.leb128(u64::from(u32::MAX), field)?;
        u32::try_from(value).map_err(|_| KafkaLogErrorKind::Varint { field })
    }

    pub(super) fn varint(&mut self, field: &'static str) -> Result<i32, KafkaLogErrorKind> {
        let zigzag = self.unsigned_varint(field)?;
        Ok((zigzag >> 1).cast_signed() ^ (zigzag & 1).cast_signed().wrapping_neg())
    }

    pub(super) fn varlong(&mut self, field: &'static str) -> Result<i64, KafkaLogErrorKind> {
        let zigzag = self.leb128(u64::MAX, field)?;
        Ok((zigzag >> 1).cast_signed() ^ (zigzag & 1).cast_signed().wrapping_neg())
    }

    /// Bytes with a varint length in front of them; -1 = null.
    pub(super) fn nullable_bytes(
        &mut self,
        field: &'static str,
    ) -> Result<Option<&'a [u8]>, KafkaLogErrorKind> {
        match self.varint(field)? {
            -1 => Ok(None),
            found => self.take(length(found, field)?, field).map(Some),
        }
    }

    /// Nothing may be left.
    pub(super) fn finish(self, field: &'static str) -> Result<(), KafkaLogErrorKind> {
        match self.rest.len() {
            0 => Ok(()),
            found => Err(KafkaLogErrorKind::LeftOver { field, found: found as u64 }),
        }
    }

    fn leb128(&mut self, max: u64, field: &'static str) -> Result<u64, KafkaLogErrorKind> {
        let mut value = 0_u64;
        let mut shift = 0_u32;
        while max.checked_shr(shift).is_some_and(|room| room > 0) {
            let [byte] = self.array(field)?;
            let low = u64::from(byte & 0x7f);
            let shifted = low.wrapping_shl(shift);
            if shifted.wrapping_shr(shift) != low || shifted > max {
                break;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.saturating_add(7);
        }
        Err(KafkaLogErrorKind::Varint { field })
    }
}

/// A length or count that must not be negative.
pub(super) fn length(found: i32, field: &'static str) -> Result<usize, KafkaLogErrorKind> {
    usize::try_from(found).map_err(|_| KafkaLogErrorKind::Length { field, found: i64::from(found) })
}

pub(super) fn put_unsigned_varint(out: &mut Vec<u8>, value: u32) {
    put_leb128(out, u64::from(value));
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_leb128(out, u64::from((value.wrapping_shl(1) ^ (value >> 31)).cast_unsigned()));
}

pub(super) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_leb128(out, (value.wrapping_shl(1) ^ (value >> 63)).cast_unsigned());
}

fn put_leb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        let [low, ..] = value.to_le_bytes();
        out.push(low | 0x80);
        value >>= 7;
    }
    let [last, ..] = value.to_le_bytes();
    out.push(last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_the_edges() {
        for value in [0, 1, -1, 63, 64, -64, -65, 8191, i32::MAX, i32::MIN] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_varlong(&mut out, i64::from(value));
            put_unsigned_varint(&mut out, value.cast_unsigned());
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint("v"), Ok(value));
            assert_eq!(reader.varlong("v"), Ok(i64::from(value)));
            assert_eq!(reader.unsigned_varint("v"), Ok(value.cast_unsigned()));
            assert_eq!(reader.finish("all"), Ok(()));
        }
        for value in [i64::MAX, i64::MIN, i64::from(i32::MAX) + 1] {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(Reader::new(&out).varlong("v"), Ok(value));
        }
    }

    #[test]
    fn overlong_varints_are_refused() {
        let varint = Err(KafkaLogErrorKind::Varint { field: "v" });
        for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x1f][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0]] {
            assert_eq!(Reader::new(bytes).unsigned_varint("v"), varint);
        }
        let mut long = [0xff_u8; 10];
        long[9] = 2;
        assert_eq!(Reader::new(&long).varlong("v"), Err(KafkaLogErrorKind::Varint { field: "v" }));
        assert_eq!(
            Reader::new(&[0x80]).varint("v"),
            Err(KafkaLogErrorKind::Short { field: "v", expected: 1, found: 0 })
        );
    }
}
