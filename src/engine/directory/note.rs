//! The note of a salvage under way, the file `SALVAGE`.

use super::FORMAT_VERSION;

/// Bytes of the note of a salvage.
pub const SALVAGE_BYTES: usize = 48;
const SALVAGE_MAGIC: &[u8; 8] = b"SHSALVG\x01";

/// What a salvage is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SalvageNote {
    /// The last LSN whose entry is kept, as was said before the salvage began.
    pub kept_lsn: u64,
    /// The first LSN that the store will give out.
    pub next_lsn: u64,
    /// Incarnation of the salvage.
    pub incarnation: u64,
    /// The snapshot is damaged and made anew from the log.
    pub rebuild: bool,
}

impl SalvageNote {
    /// The bytes of the `SALVAGE` file, see `storage-format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SALVAGE_BYTES);
        bytes.extend_from_slice(SALVAGE_MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(SALVAGE_BYTES as u32).to_le_bytes());
        bytes.extend_from_slice(&self.kept_lsn.to_le_bytes());
        bytes.extend_from_slice(&self.next_lsn.to_le_bytes());
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes.extend_from_slice(&u32::from(self.rebuild).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads a `SALVAGE` file; none if it is damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?));
        let note = Self {
            kept_lsn: u64_at(16)?,
            next_lsn: u64_at(24)?,
            incarnation: u64_at(32)?,
            rebuild: *bytes.get(40)? == 1,
        };
        (note.encode() == bytes).then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_salvage_note_is_found() {
        let note = SalvageNote { kept_lsn: 7, next_lsn: 1 << 40, incarnation: 9, rebuild: true };
        let bytes = note.encode();
        assert_eq!(bytes.len(), SALVAGE_BYTES);
        assert_eq!(SalvageNote::decode(&bytes), Some(note));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SalvageNote::decode(&damaged), None, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(SalvageNote::decode(&bytes[..cut]), None, "cut {cut}");
        }
    }
}
