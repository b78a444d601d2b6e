//! Reads and judges everything that is to be imported, before a store is touched.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::ImportError;
use crate::fsio::{FsError, FsOp, RealFs, read_file};
use crate::inspect::json::PartitionJson;
use crate::inspect::{OnProgress, Progress};
use crate::kafka_log::{Replay, SegmentSummary, read_segment};
use crate::model::{self, Command, Partition, SharePartitionKey, State};

/// Largest input file. Kafka's segments have 1 GiB at most.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The state to be imported: read, decoded, and known to be such as a store takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Share partitions in key order.
    pub(super) partitions: BTreeMap<SharePartitionKey, Partition>,
    /// What it was read from.
    pub facts: InputFacts,
}

/// What an [`Input`] was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InputFacts {
    /// Files read.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Records of Kafka's, or JSON lines.
    pub records: u64,
    /// Records of Kafka's of a type that is not known, which Kafka skips as well.
    pub unknown_records: u64,
    /// Share partitions that result.
    pub partitions: u64,
}

impl Input {
    /// The share partitions, in key order.
    pub fn partitions(&self) -> impl Iterator<Item = (&SharePartitionKey, &Partition)> {
        self.partitions.iter()
    }

    fn new(partitions: BTreeMap<SharePartitionKey, Partition>, facts: InputFacts) -> Self {
        let facts = InputFacts { partitions: partitions.len() as u64, ..facts };
        Self { partitions, facts }
    }
}

/// Reads segments of `__share_group_state` and replays them.
///
/// # Errors
/// [`ImportError`] naming file, position and offset of what is wrong.
pub fn read_kafka(
    segments: &[impl AsRef<Path>],
    progress: OnProgress<'_>,
) -> Result<Input, ImportError> {
    let mut replay = Replay::new();
    let mut facts = InputFacts::default();
    let mut before: BTreeMap<PathBuf, (PathBuf, i64)> = BTreeMap::new();
    for segment in segments {
        let path = segment.as_ref();
        let bytes = read_file(&RealFs, path, FILE_BYTES_MAX)?;
        let name = path.display().to_string();
        let summary = read_segment(&name, &bytes, &mut |record| replay.apply(&name, &record))?;
        check_place(path, &summary, &mut before)?;
        facts.files += 1;
        facts.bytes += bytes.len() as u64;
        facts.records += summary.records;
        facts.unknown_records += summary.unknown_records;
        tell(progress, facts.files, segments.len());
    }
    if let Some(key) = replay.headless().first() {
        let count = replay.headless().len() as u64;
        return Err(ImportError::Headless { key: Box::new(key.clone()), count });
    }
    let partitions = replay.finish();
    for (key, partition) in &partitions {
        judge(key, partition, || "the state that these segments lead to".to_owned())?;
    }
    Ok(Input::new(partitions, facts))
}

fn tell(progress: OnProgress<'_>, done: u64, files: usize) {
    progress(Progress { stage: "reading files", done, total: files as u64 });
}

/// Compares a segment that has a name of Kafka's with that name and with the one before it.
fn check_place(
    path: &Path,
    summary: &SegmentSummary,
    before: &mut BTreeMap<PathBuf, (PathBuf, i64)>,
) -> Result<(), ImportError> {
    let (Some(expected), Some(found)) = (offset_by_name(path), summary.first_offset) else {
        return Ok(());
    };
    if found != expected {
        return Err(ImportError::SegmentName { path: path.to_owned(), expected, found });
    }
    let dir = path.parent().map(Path::to_owned).unwrap_or_default();
    let last = summary.last_offset.unwrap_or(found);
    let here = (path.to_owned(), last.saturating_add(1));
    if let Some((before, expected)) = before.insert(dir, here)
        && found != expected
    {
        return Err(ImportError::SegmentOrder { path: path.to_owned(), before, expected, found });
    }
    Ok(())
}

/// The base offset of a file called `00000000000000000000.log`.
fn offset_by_name(path: &Path) -> Option<i64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let named = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| named)
}

/// Reads JSON lines as an export writes them; `-` is the standard input. Empty lines are skipped.
///
/// # Errors
/// [`ImportError`] naming file and line of what is wrong.
pub fn read_json(
    files: &[impl AsRef<Path>],
    progress: OnProgress<'_>,
) -> Result<Input, ImportError> {
    let mut partitions = BTreeMap::new();
    let mut facts = InputFacts::default();
    for file in files {
        let path = file.as_ref();
        let bytes = if path == Path::new("-") {
            standard_input()?
        } else {
            read_file(&RealFs, path, FILE_BYTES_MAX)?
        };
        facts.records += read_lines(&path.display().to_string(), &bytes, &mut partitions)?;
        facts.files += 1;
        facts.bytes += bytes.len() as u64;
        tell(progress, facts.files, files.len());
    }
    let partitions = partitions.into_iter().map(|(key, (_, partition))| (key, partition));
    Ok(Input::new(partitions.collect(), facts))
}

fn standard_input() -> Result<Vec<u8>, FsError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|source| FsError::new(FsOp::Read, Path::new("standard input"), source))?;
    Ok(bytes)
}

/// Share partitions with the line that they came from.
type Lines = BTreeMap<SharePartitionKey, (u64, Partition)>;

fn read_lines(file: &str, bytes: &[u8], partitions: &mut Lines) -> Result<u64, ImportError> {
    let mut records = 0;
    let own = |key: &SharePartitionKey| Box::new(key.clone());
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let json: PartitionJson =
            serde_json::from_slice(text).map_err(|error| ImportError::Json {
                file: file.to_owned(),
                line,
                column: error.column(),
                reason: without_place(&error),
            })?;
        let (key, partition) = json.into_partition().map_err(|source| ImportError::Field {
            file: file.to_owned(),
            line,
            source,
        })?;
        judge(&key, &partition, || format!("{file}: line {line}"))?;
        records += 1;
        match partitions.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert((line, partition));
            }
            Entry::Occupied(entry) => {
                return Err(ImportError::Twice {
                    file: file.to_owned(),
                    line,
                    key: own(entry.key()),
                    first_line: entry.get().0,
                });
            }
        }
    }
    Ok(records)
}

/// The error without the line and column that it counts within the one line that it was given.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Asks the model whether an empty store would take this.
fn judge(
    key: &SharePartitionKey,
    partition: &Partition,
    place: impl FnOnce() -> String,
) -> Result<(), ImportError> {
    if !partition.pending.is_empty() {
        let (place, key) = (place(), Box::new(key.clone()));
        return Err(ImportError::Pending { place, key, ranges: partition.pending.len() });
    }
    let command = Command::Import {
        key: key.clone(),
        partition: Box::new(partition.clone()),
        replace: false,
    };
    let decision = model::decide(&State::default(), &command, 0, &model::Options::default());
    match decision.answer {
        Ok(_) => Ok(()),
        Err(source) => {
            Err(ImportError::Refused { place: place(), key: Box::new(key.clone()), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kafkas_names_are_taken_for_offsets() {
        let by_name = |name: &str| offset_by_name(&Path::new("dir").join(name));
        assert_eq!(by_name("00000000000000000012.log"), Some(12));
        for name in
            ["12.log", "state-0.log", "00000000000000000012.txt", "+0000000000000000012.log"]
        {
            assert_eq!(by_name(name), None, "{name}");
        }
    }

    #[test]
    fn lines_are_counted_across_empty_ones() {
        let mut lines = Lines::new();
        let error = read_lines("f", b"\n\n{\"group_id\":7}\n", &mut lines).unwrap_err();
        assert!(error.to_string().starts_with("f: line 3, column 13: invalid type"), "{error}");
    }
}
