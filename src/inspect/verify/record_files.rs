//! RocksDB's own files: which manifest is current, and the records of manifest and write-ahead log.
//! (Its table files are checked by reading all rows. What a flipped bit in a table's filter does is
//! nothing but lost time: RocksDB itself reads on without the filter, and so does this check.)
//!
//! RocksDB reads its log up to the first record that does not verify and takes that for the end, so
//! rot there would pass for a crash: the snapshot would silently fall back to an older checkpoint.
//! Both kinds of file are sequences of records in blocks of 32 KiB, each record with a CRC-32C:
//!
//! ```text
//! record = masked CRC-32C u32, length u16, type u8, [log number u32 if recyclable], payload
//! ```

use std::ffi::OsStr;
use std::path::Path;

use super::{Finding, Findings};
use crate::fsio::{Fs, FsError, read_file};

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
const RECYCLABLE_HEADER: usize = 11;
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Checks every such file in `dir`.
pub(super) fn check(fs: &dyn Fs, dir: &Path, findings: &mut Findings) -> Result<(), FsError> {
    if !fs.exists(dir)? {
        findings.add(Finding::new(dir, "the directory of the snapshot", "none"));
        return Ok(());
    }
    check_current(fs, dir, findings)?;
    for entry in fs.list(dir)? {
        if !is_record_file(&entry.name) {
            continue;
        }
        let path = dir.join(&entry.name);
        let bytes = match read_file(fs, &path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            // RocksDB deletes what it no longer needs.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if let Some(Fault { offset, expected, found }) = first_fault(&bytes) {
            findings.add(Finding::new(&path, expected, found).at(offset as u64));
        }
    }
    Ok(())
}

/// `CURRENT` holds the name of the manifest.
fn check_current(fs: &dyn Fs, dir: &Path, findings: &mut Findings) -> Result<(), FsError> {
    const NAME_BYTES_MAX: u64 = 64;
    let path = dir.join("CURRENT");
    if !fs.exists(&path)? {
        findings.add(Finding::new(&path, "the name of the manifest", "no file"));
        return Ok(());
    }
    let bytes = match read_file(fs, &path, NAME_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Vec::new(),
        Err(error) => return Err(error),
    };
    let name = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n'));
    match name.filter(|name| name.starts_with("MANIFEST-") && is_record_file(OsStr::new(name))) {
        None => {
            let found = format!("{:?}", String::from_utf8_lossy(&bytes));
            findings.add(Finding::new(&path, "the name of the manifest", found).at(0));
        }
        Some(name) if !fs.exists(&dir.join(name))? => {
            findings.add(Finding::new(&dir.join(name), "the manifest named in CURRENT", "no file"));
        }
        Some(_) => {}
    }
    Ok(())
}

/// `000123.log` and `MANIFEST-000123`.
fn is_record_file(name: &OsStr) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.to_str().is_some_and(|name| {
        name.strip_suffix(".log").or_else(|| name.strip_prefix("MANIFEST-")).is_some_and(digits)
    })
}

/// A record that does not verify.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    offset: usize,
    expected: String,
    found: String,
}

/// The first record that is there in full and does not verify. A record that the file cuts off is
/// the end, as its write was not finished; unless one that verifies stands behind its beginning.
fn first_fault(bytes: &[u8]) -> Option<Fault> {
    let mut offset = 0;
    while let Some(header) = bytes.get(offset..).and_then(<[u8]>::first_chunk::<HEADER>) {
        let left_in_block = BLOCK - offset % BLOCK;
        let [.., l0, l1, kind] = *header;
        if left_in_block < HEADER || (kind == 0 && l0 == 0 && l1 == 0) {
            offset += left_in_block; // what is left of the block is padding
            continue;
        }
        match record(bytes, offset) {
            Record::Whole { end } => offset = end,
            Record::Rotten { stored, computed } => {
                let expected = format!("a record with CRC-32C {computed:08x}");
                return Some(Fault { offset, expected, found: format!("{stored:08x}") });
            }
            Record::CutOff { end } => {
                let next = (offset + 1..bytes.len()).find(|place| is_record(bytes, *place))?;
                let expected = format!("a record that ends before the next one, at byte {next}");
                return Some(Fault { offset, expected, found: format!("one up to byte {end}") });
            }
        }
    }
    None
}

enum Record {
    Whole { end: usize },
    Rotten { stored: u32, computed: u32 },
    CutOff { end: usize },
}

/// Judges the record at `offset`, where at least a header is.
fn record(bytes: &[u8], offset: usize) -> Record {
    let rest = bytes.get(offset..).unwrap_or_default();
    let Some([c0, c1, c2, c3, l0, l1, kind]) = rest.first_chunk::<HEADER>() else {
        return Record::CutOff { end: offset + HEADER };
    };
    let length = usize::from(u16::from_le_bytes([*l0, *l1]));
    let size = length + if is_recyclable(*kind) { RECYCLABLE_HEADER } else { HEADER };
    let Some(covered) = rest.get(6..size) else {
        return Record::CutOff { end: offset + size };
    };
    let stored = u32::from_le_bytes([*c0, *c1, *c2, *c3]);
    let computed = mask(crc32c(covered));
    if stored == computed && size <= BLOCK - offset % BLOCK {
        Record::Whole { end: offset + size }
    } else {
        Record::Rotten { stored, computed }
    }
}

/// Whether a record of a usual kind stands here.
fn is_record(bytes: &[u8], offset: usize) -> bool {
    matches!(bytes.get(offset + 6), Some(1..=4))
        && matches!(record(bytes, offset), Record::Whole { .. })
}

/// Types 5 to 8, and from 10 on the odd ones, carry a log number.
fn is_recyclable(kind: u8) -> bool {
    (5..=8).contains(&kind) || (kind >= 10 && kind % 2 == 1)
}

/// RocksDB stores checksums masked, as the data may hold checksums itself.
fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), byte by byte: these files are small.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut crc = index as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[index] = crc;
            index += 1;
        }
        table
    };
    let step = |crc: u32, byte: &u8| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut covered = vec![kind];
        covered.extend_from_slice(payload);
        let mut record = mask(crc32c(&covered)).to_le_bytes().to_vec();
        record.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        record.extend_from_slice(&covered);
        record
    }

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn whole_files_pass_and_flipped_bits_are_found() {
        let mut file = record_of(1, b"first");
        file.extend(record_of(2, &[7; 300]));
        let last = file.len();
        file.extend(record_of(4, &[8; 9]));
        assert_eq!(first_fault(&file), None);
        for cut in 0..file.len() {
            assert_eq!(first_fault(&file[..cut]), None, "cut at {cut}");
        }
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Length and type of the last record may say that it goes on behind the end, which
            // reads as a write that was not finished.
            let may_lie = (last + 4..last + HEADER).contains(&(bit / 8));
            assert!(first_fault(&damaged).is_some() || may_lie, "bit {bit}");
        }
    }

    #[test]
    fn records_go_on_behind_the_padding_of_a_block() {
        let mut file = record_of(1, &vec![1; BLOCK - HEADER - 5]);
        file.extend([0; 5]);
        file.extend(record_of(1, b"second block"));
        assert_eq!(first_fault(&file), None);
        let last = file.len() - 1;
        file[last] ^= 1;
        assert_eq!(first_fault(&file).map(|fault| fault.offset), Some(BLOCK));
    }
}
