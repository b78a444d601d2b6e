//! Why bytes are no frame.

use crate::log::format::FRAME_HEADER_BYTES;

/// Which check a frame failed, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Fewer bytes are left than a header takes.
    #[error("{available} bytes are left, a frame header takes {FRAME_HEADER_BYTES}")]
    Short {
        /// Bytes left.
        available: usize,
    },
    /// The magic is missing.
    #[error("no frame magic, found {found:02x?}")]
    Magic {
        /// What stands there.
        found: [u8; 4],
    },
    /// The header does not match its checksum.
    #[error("header checksum {stored:08x}, computed {computed:08x}")]
    HeaderChecksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the header.
        computed: u32,
        /// Whether the payload length would fit.
        plausible: bool,
    },
    /// Intact, but with a feature of a newer version.
    #[error("{field} {found} is of a newer version, this one knows {supported}")]
    Newer {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The newest value known.
        supported: u64,
    },
    /// The payload would not fit into the segment, or into any frame.
    #[error("payload of {payload} bytes, {room} are possible here")]
    Length {
        /// The payload length in bytes.
        payload: u64,
        /// The largest possible.
        room: u64,
    },
    /// Intact, but this field cannot have this value.
    #[error("{field} cannot be {found}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
    /// The file ends within the frame.
    #[error("the frame takes {needed} bytes, {available} are left")]
    Truncated {
        /// Bytes of the frame.
        needed: u64,
        /// Bytes left.
        available: u64,
    },
    /// The payload does not match its checksum.
    #[error("payload checksum {stored:08x}, computed {computed:08x}")]
    PayloadChecksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the payload.
        computed: u32,
    },
    /// The padding is not zero.
    #[error("the padding after the payload is not zero")]
    Padding,
    /// The entries do not fill the payload exactly.
    #[error("entry {index} of {count} does not fit the payload of {payload} bytes")]
    Entries {
        /// Index of the first entry that does not fit, or the count if bytes are left.
        index: u32,
        /// The entry count of the header.
        count: u32,
        /// The payload length in bytes.
        payload: u32,
    },
}

impl FrameError {
    /// What the end-of-log table asks: whether the frame is plausible, whether its header matches
    /// its checksum, and whether its payload does.
    pub(in crate::log) fn checks(&self) -> (bool, bool, bool) {
        match self {
            FrameError::Short { .. } | FrameError::Magic { .. } => (false, false, false),
            FrameError::HeaderChecksum { plausible, .. } => (*plausible, false, false),
            FrameError::Newer { .. } | FrameError::Length { .. } | FrameError::Field { .. } => {
                (false, true, false)
            }
            FrameError::Truncated { .. } | FrameError::PayloadChecksum { .. } => {
                (true, true, false)
            }
            FrameError::Padding | FrameError::Entries { .. } => (false, true, true),
        }
    }
}
