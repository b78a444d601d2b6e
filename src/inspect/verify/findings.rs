//! What a check finds, and how other errors read as findings.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::inspect::text::OneLine;
use crate::log::LogError;
use crate::model::Lsn;
use crate::snapshot::SnapshotError;

/// Findings that are listed; further ones are only counted.
const LISTED_MAX: usize = 1_000;

/// Something that is not as it was written. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, or the directory where a file is missing.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub offset: Option<u64>,
    /// The LSN concerned.
    pub lsn: Option<Lsn>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        if let Some(lsn) = self.lsn {
            write!(f, ", LSN {lsn}")?;
        }
        write!(f, ": expected {}, found {}", OneLine(&self.expected), OneLine(&self.found))
    }
}

/// All findings of a check.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub listed: Vec<Finding>,
    pub more: u64,
}

impl Findings {
    /// Adds a finding, unless one of the same place is there.
    pub fn add(&mut self, finding: Finding) {
        let same = |other: &Finding| {
            finding.offset.is_some() && other.offset == finding.offset && other.file == finding.file
        };
        if self.listed.iter().any(same) {
            return;
        }
        if self.listed.len() < LISTED_MAX {
            self.listed.push(finding);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

impl Finding {
    pub(super) fn new(file: &Path, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self { file: file.to_owned(), offset: None, lsn: None, expected, found }
    }

    pub(super) fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    pub(super) fn of_lsn(self, lsn: Lsn) -> Self {
        Self { lsn: Some(lsn), ..self }
    }

    /// Damage of the log; gives the error back when it is none.
    pub(super) fn of_log(error: LogError) -> Result<Self, LogError> {
        Ok(match error {
            LogError::Corrupt { path, offset, lsn, expected, found, row } => {
                let found = if row.is_empty() { found } else { format!("{found} ({row})") };
                Self::new(&path, expected, found).at(offset).of_lsn(lsn)
            }
            LogError::Foreign { path, expected, found } => {
                let expected = format!("a segment of store {expected}");
                Self::new(&path, expected, format!("one of store {found}")).at(UUID_OFFSET)
            }
            LogError::Misnamed { path, expected, found } => {
                let found = format!("the one from LSN {found}");
                Self::new(&path, format!("the segment from LSN {expected}"), found)
                    .at(FIRST_LSN_OFFSET)
                    .of_lsn(expected)
            }
            LogError::Missing { dir, first, last, before, after } => {
                let place = before.or(after).unwrap_or(dir);
                let expected = format!("a segment with LSN {first} to {last} next to it");
                Self::new(&place, expected, "none").of_lsn(first)
            }
            LogError::MissingSuccessor { path, next_lsn } => {
                let expected = format!("a segment from LSN {next_lsn} behind this sealed one");
                Self::new(&path, expected, "none").of_lsn(next_lsn)
            }
            LogError::Overlap { path, next, last, first } => {
                let expected = format!("LSN {} to come first", last.saturating_add(1));
                let found = format!("LSN {first}, which is in {} as well", path.display());
                Self::new(&next, expected, found).of_lsn(first)
            }
            LogError::BehindSnapshot { path, offset, last_lsn, applied_lsn } => {
                let expected = format!("LSN {applied_lsn}, which the snapshot has applied");
                let found = format!("the end of the log behind LSN {last_lsn}");
                Self::new(&path, expected, found).at(offset).of_lsn(last_lsn.saturating_add(1))
            }
            other => return Err(other),
        })
    }

    /// Damage of the snapshot.
    pub(super) fn of_snapshot(error: &SnapshotError) -> Self {
        match error {
            SnapshotError::Storage { path, operation, reason, .. } => {
                let (file, offset) = place_in(reason, path).unwrap_or((path.clone(), None));
                let expected = format!("to {operation} it");
                Self { offset, ..Self::new(&file, expected, reason.clone()) }
            }
            SnapshotError::Row { path, family, row, source } => {
                let expected = format!("row `{row}` of `{family}` to be whole");
                Self::new(path, expected, source.to_string())
            }
            SnapshotError::Foreign { path, expected, found } => {
                let expected = format!("the snapshot of store {expected}");
                Self::new(path, expected, format!("that of store {found}"))
            }
            SnapshotError::NoIdentity { path, field } => {
                Self::new(path, format!("a field `{field}`"), "none, or one of another size")
            }
        }
    }
}

/// Where a segment header has the store's uuid and the first LSN.
pub(super) const UUID_OFFSET: u64 = 16;
pub(super) const FIRST_LSN_OFFSET: u64 = 32;

/// RocksDB tells file and offset in words only: `... in /dir/000012.sst offset 71 size 4096 ...`.
/// They are for the reader of the report; nothing is decided by them.
fn place_in(reason: &str, dir: &Path) -> Option<(PathBuf, Option<u64>)> {
    let start = reason.find(&format!("{}/", dir.display()))?;
    let name = reason.get(start + dir.as_os_str().len() + 1..)?;
    let end = name.find([' ', ':', ',']).unwrap_or(name.len());
    let offset = name[end..].strip_prefix(" offset ").and_then(|rest| {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    });
    Some((dir.join(&name[..end]), offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_taken_from_rocksdbs_words() {
        let place = |reason| {
            let place = place_in(reason, Path::new("/a b/snapshot"));
            place.map(|(path, at)| (path.display().to_string(), at))
        };
        let words = "Corruption: block checksum mismatch: stored = 1, computed = 2, type = 4  \
                     in /a b/snapshot/000012.sst offset 71 size 94, block_type = Data";
        assert_eq!(place(words), Some(("/a b/snapshot/000012.sst".into(), Some(71))));
        let words = "IO error: No such file or directory: While open a file for random read: \
                     /a b/snapshot/000009.sst: No such file or directory";
        assert_eq!(place(words), Some(("/a b/snapshot/000009.sst".into(), None)));
        assert_eq!(place("Corruption: CURRENT file corrupted"), None);
    }
}
