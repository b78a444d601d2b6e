//! How frames continue each other, and which of them nothing vouches for.

use std::collections::VecDeque;

use super::Lsn;
use super::directory::KnownSegment;
use super::frame::{Frame, FrameFields, FrameKind};

/// What the next frame must continue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chain {
    pub next_lsn: Lsn,
    /// Payload checksum of the frame before; `None` where it is unknown.
    pub prev_checksum: Option<u32>,
    /// The newest opening seen so far.
    pub incarnation: u64,
}

impl Chain {
    /// What keeps a frame from continuing the one before: what is expected, and what is found.
    pub(super) fn broken_link(&self, fields: &FrameFields) -> Option<(String, String)> {
        if fields.first_lsn != self.next_lsn {
            let expected = format!("a frame from LSN {}", self.next_lsn);
            return Some((expected, format!("one from LSN {}", fields.first_lsn)));
        }
        if let Some(prev) = self.prev_checksum
            && fields.prev_checksum != prev
        {
            let expected = format!("a frame behind the one with checksum {prev:08x}");
            return Some((expected, format!("one behind {:08x}", fields.prev_checksum)));
        }
        if fields.incarnation < self.incarnation {
            let expected = format!("incarnation {} or later", self.incarnation);
            return Some((expected, fields.incarnation.to_string()));
        }
        None
    }

    /// Whether a frame may follow later on. If not, it is of an older timeline and proves nothing
    /// about this one.
    pub(super) fn may_reach(&self, fields: &FrameFields) -> bool {
        fields.first_lsn >= self.next_lsn && fields.incarnation >= self.incarnation
    }

    pub(super) fn advance(&mut self, frame: &Frame<'_>) {
        self.next_lsn = frame.fields().next_lsn();
        self.prev_checksum = Some(frame.payload_checksum());
        self.incarnation = self.incarnation.max(frame.fields().incarnation);
    }
}

/// The frames that may never have reached the disk.
#[derive(Debug)]
pub(super) struct Unproven {
    /// The segment they are in.
    pub segment: KnownSegment,
    /// Start of the first, in bytes.
    pub from: u64,
    /// End of the last, in bytes.
    pub to: u64,
}

/// Follows which frames of a segment something vouches for.
///
/// Others are kept in groups, so that a segment full of small un-synced frames takes little memory.
#[derive(Debug)]
pub(super) struct Vouchers {
    /// Everything up to here is proven to have been synced.
    pub lsn: Lsn,
    /// Offset of the first frame, and last LSN, of each group of frames above that.
    groups: VecDeque<(u64, Lsn)>,
    /// Start and end of the last frame.
    last: Option<(u64, u64)>,
}

const GROUP_BYTES: u64 = 64 << 10;

impl Vouchers {
    /// Starts with what the snapshot vouches for.
    pub(super) fn new(applied_lsn: Lsn) -> Vouchers {
        Vouchers { lsn: applied_lsn, groups: VecDeque::new(), last: None }
    }

    /// Goes on to another segment.
    pub(super) fn next_segment(&mut self) {
        self.groups.clear();
        self.last = None;
    }

    pub(super) fn take(&mut self, offset: u64, frame: &Frame<'_>) {
        let fields = frame.fields();
        self.vouch(fields.durable_mark);
        self.last = Some((offset, offset.saturating_add(frame.frame_bytes())));
        if fields.kind != FrameKind::Data {
            return;
        }
        let last_lsn = fields.next_lsn().saturating_sub(1);
        match self.groups.back_mut() {
            Some((start, last)) if offset.saturating_sub(*start) < GROUP_BYTES => *last = last_lsn,
            _ => self.groups.push_back((offset, last_lsn)),
        }
    }

    pub(super) fn vouch(&mut self, lsn: Lsn) {
        self.lsn = self.lsn.max(lsn);
        while self.groups.front().is_some_and(|(_, last)| *last <= self.lsn) {
            self.groups.pop_front();
        }
    }

    /// From the first frame that nothing vouches for to the last one. The last one is always in
    /// it, for nothing vouches for a mark or a seal. `None` in a segment without frames.
    pub(super) fn unproven(&self, segment: &KnownSegment) -> Option<Unproven> {
        let (last, to) = self.last?;
        let from = self.groups.front().map_or(last, |(first, _)| last.min(*first));
        Some(Unproven { segment: segment.clone(), from, to })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]
    use super::super::frame::{decode_frame, encode_frame};
    use super::super::{Batch, SegmentHeader, SegmentId};
    use super::*;

    /// Bytes of each frame.
    const FRAME: u64 = 8 << 10;

    fn segment() -> KnownSegment {
        let id = SegmentId { uuid: uuid::Uuid::from_u128(1), first_lsn: 1 };
        let header = SegmentHeader { id, segment_bytes: 1 << 20, incarnation: 1 };
        KnownSegment { path: "/wal/1".into(), header, file_bytes: 1 << 20 }
    }

    /// Takes a frame of one entry.
    fn take(vouchers: &mut Vouchers, segment: &KnownSegment, lsn: Lsn) {
        let mut batch = Batch::new(lsn);
        batch.push(1, 1, &vec![7; FRAME as usize - 64]);
        let fields = FrameFields {
            kind: FrameKind::Data,
            relaxed: true,
            first_lsn: lsn,
            entry_count: 1,
            prev_checksum: 0,
            durable_mark: 0,
            incarnation: 1,
        };
        let (mut bytes, offset) = (Vec::new(), (lsn - 1) * FRAME);
        let id = &segment.header.id;
        encode_frame(&mut bytes, id, offset, &fields, batch.payload());
        vouchers.take(offset, &decode_frame(id, &bytes, offset).expect("a frame"));
        assert_eq!(bytes.len() as u64, FRAME);
    }

    #[test]
    fn frames_are_kept_in_groups_and_a_group_is_vouched_for_as_a_whole() {
        let segment = segment();
        let mut vouchers = Vouchers::new(0);
        (1..=24).for_each(|lsn| take(&mut vouchers, &segment, lsn));
        assert_eq!(vouchers.groups, [(0, 8), (GROUP_BYTES, 16), (2 * GROUP_BYTES, 24)]);
        for (vouched, from) in [(7, 0), (8, GROUP_BYTES), (16, 2 * GROUP_BYTES), (24, 23 * FRAME)] {
            vouchers.vouch(vouched);
            let unproven = vouchers.unproven(&segment).expect("frames");
            assert_eq!((unproven.from, unproven.to), (from, 24 * FRAME), "up to {vouched}");
        }
    }
}
