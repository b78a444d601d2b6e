//! The directory of the log: file names, segment headers, and what else lies there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::format::{FORMAT_VERSION, HeaderFault, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::{LogError, Lsn};
use crate::fsio::{Fs, FsError, OpenMode, read_up_to};
use crate::seeded;

/// Name of the next segment while it is made.
pub(super) const PREPARED: &str = "prepared.tmp";

/// The name of the segment whose first entry has this LSN.
pub fn segment_file_name(first_lsn: Lsn) -> String {
    format!("{first_lsn:020}.wal")
}

fn parse_segment_name(name: &OsStr) -> Option<Lsn> {
    let digits = name.to_str()?.strip_suffix(".wal")?;
    if (digits.len() != 20 && !seeded::bug("nats-8101"))
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    digits.parse().ok().filter(|lsn| *lsn > 0)
}

/// The log's own files in `dir`: its segments, oldest first, and one that was being made.
///
/// # Errors
/// [`FsError`] when the directory cannot be listed.
pub fn file_names(fs: &dyn Fs, dir: &Path) -> Result<Vec<(Option<Lsn>, PathBuf)>, FsError> {
    let Listing { segments, prepared, .. } = Listing::read(fs, dir)?;
    let segments = segments.into_iter().map(|(first_lsn, path)| (Some(first_lsn), path));
    Ok(segments.chain(prepared.map(|path| (None, path))).collect())
}

/// What the names say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// First LSN and path of every segment, by LSN.
    pub segments: Vec<(Lsn, PathBuf)>,
    /// A segment that was being made.
    pub prepared: Option<PathBuf>,
    /// Files that are none of ours.
    pub unknown: Vec<PathBuf>,
}

impl Listing {
    pub(super) fn read(fs: &dyn Fs, dir: &Path) -> Result<Listing, FsError> {
        let mut listing = Listing { segments: Vec::new(), prepared: None, unknown: Vec::new() };
        for entry in fs.list(dir)? {
            let path = dir.join(&entry.name);
            match parse_segment_name(&entry.name) {
                Some(first_lsn) if !entry.is_dir => {
                    listing.segments.push((first_lsn, path));
                }
                _ if entry.name == PREPARED && !entry.is_dir => listing.prepared = Some(path),
                _ => listing.unknown.push(path),
            }
        }
        Ok(listing)
    }

    /// Whether the same segments are there.
    pub(super) fn same_segments(&self, other: &Listing) -> bool {
        let names = |listing: &Listing| -> Vec<Lsn> {
            listing.segments.iter().map(|(first_lsn, _)| *first_lsn).collect()
        };
        names(self) == names(other)
    }
}

/// A segment whose header has been verified.
#[derive(Debug, Clone)]
pub(super) struct KnownSegment {
    pub path: PathBuf,
    pub header: SegmentHeader,
    /// Length of the file in bytes, at most what the header says.
    pub file_bytes: u64,
}

impl KnownSegment {
    pub(super) fn first_lsn(&self) -> Lsn {
        self.header.id.first_lsn
    }

    /// Bytes by which the file is too short.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.header.segment_bytes.saturating_sub(self.file_bytes)
    }

    /// Reads and verifies the header of the segment named for `first_lsn`.
    pub(super) fn open(
        fs: &dyn Fs,
        path: PathBuf,
        first_lsn: Lsn,
        uuid: Uuid,
    ) -> Result<KnownSegment, LogError> {
        let file = fs.open(&path, OpenMode::Read)?;
        let file_bytes = file.len()?;
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let read = read_up_to(&*file, &mut bytes, 0)?;
        let corrupt = |offset: u64, expected: String, found: String| LogError::Corrupt {
            path: path.clone(),
            offset,
            lsn: first_lsn,
            expected,
            found,
            row: "",
        };
        if read < SEGMENT_HEADER_BYTES {
            // The header is synced before the segment gets its name: no crash leaves this.
            let expected = format!("a segment header of {SEGMENT_HEADER_BYTES} bytes");
            return Err(corrupt(0, expected, format!("{read} bytes")));
        }
        let header = SegmentHeader::decode(&bytes).map_err(|fault| match fault {
            HeaderFault::Magic(found) => {
                corrupt(0, "the segment magic".into(), format!("{found:02x?}"))
            }
            HeaderFault::Checksum { stored, computed } => corrupt(
                0,
                format!("segment header checksum {computed:08x}"),
                format!("{stored:08x}"),
            ),
            HeaderFault::Version(found) => LogError::Newer {
                path: path.clone(),
                offset: 8,
                field: "log format version",
                found: found.into(),
                supported: FORMAT_VERSION.into(),
            },
            HeaderFault::Field(field, found) => {
                corrupt(0, format!("a possible {field}"), found.to_string())
            }
        })?;
        if header.id.uuid != uuid {
            return Err(LogError::Foreign { path, expected: uuid, found: header.id.uuid });
        }
        if header.id.first_lsn != first_lsn {
            let found = header.id.first_lsn;
            return Err(LogError::Misnamed { path, expected: first_lsn, found });
        }
        if file_bytes > header.segment_bytes {
            let expected = format!("a file of {} bytes", header.segment_bytes);
            return Err(corrupt(header.segment_bytes, expected, format!("{file_bytes} bytes")));
        }
        Ok(KnownSegment { path, header, file_bytes })
    }
}
