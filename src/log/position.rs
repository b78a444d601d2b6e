//! Gathers the facts about one position of the log and asks the [table](super::tail) what they
//! mean.

use super::chain::Chain;
use super::directory::KnownSegment;
use super::format::{FRAME_ALIGN, FRAME_MAGIC};
use super::frame::{FrameError, FrameFields};
use super::reader::{Rest, SegmentReader};
use super::scan::TornTail;
use super::tail::{Facts, Later, Verdict, row_for};
use super::{LogError, Lsn};
use crate::fsio::FsError;
use crate::seeded;

/// A position, and what is known before its bytes are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position<'a> {
    pub segment: &'a KnownSegment,
    /// The segment behind this one.
    pub next: Option<&'a KnownSegment>,
    /// No later segment holds a frame.
    pub last_segment: bool,
    pub offset: u64,
    pub chain: Chain,
    pub applied_lsn: Lsn,
}

impl Position<'_> {
    /// Decides about a whole frame.
    pub(super) fn accept(&self, fields: &FrameFields) -> Result<(), LogError> {
        let broken_link = self.chain.broken_link(fields);
        let row = row_for(&Facts {
            plausible: true,
            header_ok: true,
            payload_ok: true,
            chain_ok: broken_link.is_none(),
            ..self.no_facts()
        });
        if row.verdict != Verdict::Accept {
            let (expected, found) = broken_link.unwrap_or_default();
            return Err(self.corrupt(expected, found, row.label));
        }
        match self.next {
            Some(next) if fields.next_lsn() > next.first_lsn() => Err(LogError::Overlap {
                path: self.segment.path.clone(),
                next: next.path.clone(),
                last: fields.next_lsn().saturating_sub(1),
                first: next.first_lsn(),
            }),
            _ => Ok(()),
        }
    }

    /// Decides about anything else: the log ends here, cleanly or with a torn tail, or an error.
    pub(super) fn judge(
        &self,
        fault: Result<FrameError, FsError>,
        reader: &mut SegmentReader<'_>,
    ) -> Result<Option<TornTail>, LogError> {
        let gathered = fault.and_then(|fault| {
            let rest = reader.rest(self.offset)?;
            let (later, later_at) = self.later(&rest, reader)?;
            let links = reader
                .header(self.offset)?
                .is_ok_and(|headed| self.chain.broken_link(headed.fields()).is_none());
            Ok((fault, rest, later, later_at, links))
        });
        let (fault, rest, later, later_at, chain_ok) = match gathered {
            Ok(gathered) => gathered,
            Err(_) if seeded::bug("KAFKA-16030") => return Ok(None),
            Err(error) => {
                let facts = Facts { read_error: true, ..self.no_facts() };
                debug_assert_eq!(row_for(&facts).verdict, Verdict::IoError);
                return Err(error.into());
            }
        };
        let (plausible, header_ok, payload_ok) = fault.checks();
        let next = self.next.filter(|_| !seeded::bug("rocksdb-7701"));
        let successor = next.map_or(0, |next| next.first_lsn().saturating_sub(1));
        let vouched = self.applied_lsn.max(successor) >= self.chain.next_lsn;
        let row = row_for(&Facts {
            plausible,
            header_ok,
            payload_ok,
            chain_ok,
            rest_zero: rest.zero,
            later,
            vouched: vouched || later == Later::Vouching,
            ..self.no_facts()
        });
        match row.verdict {
            Verdict::End => Ok(None),
            Verdict::TornTail => Ok(Some(TornTail {
                path: self.segment.path.clone(),
                segment: self.segment.first_lsn(),
                offset: self.offset,
                bytes: rest.used_end.saturating_sub(self.offset),
                missing_bytes: self.segment.missing_bytes(),
                lsn: self.chain.next_lsn,
                reason: fault.to_string(),
                row: row.label,
            })),
            // Nothing but the snapshot can vouch for more at a clean end of the last segment.
            _ if rest.zero && self.next.is_none() => Err(LogError::BehindSnapshot {
                path: self.segment.path.clone(),
                offset: self.offset,
                last_lsn: self.chain.next_lsn.saturating_sub(1),
                applied_lsn: self.applied_lsn,
            }),
            _ => {
                let expected = format!("the frame of LSN {}", self.chain.next_lsn);
                let mut found = self.describe(&rest);
                if !rest.zero {
                    found = format!("{fault}; {found}");
                }
                if let Some(at) = later_at {
                    found = format!("{found}; a whole frame follows at byte {at}");
                }
                Err(self.corrupt(expected, found, row.label))
            }
        }
    }

    /// Looks at what follows a seal, which is nothing.
    pub(super) fn check_after_seal(&self, reader: &mut SegmentReader<'_>) -> Result<(), LogError> {
        let rest = reader.rest(self.offset)?;
        if rest.zero {
            return Ok(());
        }
        let end = self.segment.header.segment_bytes;
        let expected = format!("zeros behind the seal to byte {end}");
        Err(self.corrupt(expected, self.describe(&rest), ""))
    }

    /// A feature this version does not know.
    pub(super) fn newer(&self, field: &'static str, found: u64, supported: u64) -> LogError {
        let path = self.segment.path.clone();
        LogError::Newer { path, offset: self.offset, field, found, supported }
    }

    fn no_facts(&self) -> Facts {
        Facts {
            read_error: false,
            last_segment: self.last_segment,
            plausible: false,
            header_ok: false,
            payload_ok: false,
            chain_ok: false,
            rest_zero: false,
            later: Later::Nothing,
            vouched: false,
        }
    }

    /// Looks for the strongest whole frame of this chain behind the position, and where it is.
    fn later(
        &self,
        rest: &Rest,
        reader: &mut SegmentReader<'_>,
    ) -> Result<(Later, Option<u64>), FsError> {
        let mut strongest = (Later::Nothing, None);
        if seeded::bug("nats-7549") {
            return Ok(strongest);
        }
        let mut at = self.offset.saturating_add(FRAME_ALIGN);
        while at < rest.used_end && strongest.0 != Later::Vouching {
            let mut step = FRAME_ALIGN;
            if reader.get(at, FRAME_MAGIC.len())? == FRAME_MAGIC
                && let Ok(frame) = reader.frame(at)?
                && self.chain.may_reach(frame.fields())
            {
                let strength = if frame.fields().durable_mark >= self.chain.next_lsn {
                    Later::Vouching
                } else if frame.fields().relaxed {
                    Later::Relaxed
                } else {
                    Later::Strict
                };
                if strength > strongest.0 {
                    strongest = (strength, Some(at));
                }
                step = frame.frame_bytes();
            }
            at = at.saturating_add(step);
        }
        Ok(strongest)
    }

    fn corrupt(&self, expected: String, found: String, row: &'static str) -> LogError {
        LogError::Corrupt {
            path: self.segment.path.clone(),
            offset: self.offset,
            lsn: self.chain.next_lsn,
            expected,
            found,
            row,
        }
    }

    fn describe(&self, rest: &Rest) -> String {
        let used = rest.used_end.saturating_sub(self.offset);
        match (used, self.segment.missing_bytes()) {
            (0, 0) => "zeros to the end of the segment".into(),
            (0, missing) => format!("a file {missing} bytes too short"),
            (used, 0) => format!("{used} bytes up to the last that is not zero"),
            (used, missing) => format!("{used} bytes, and a file {missing} bytes too short"),
        }
    }
}
