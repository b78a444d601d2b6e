//! `inspect`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use sharestate::engine::directory::FORMAT_VERSION;
use sharestate::fsio::{Fs as _, FsError, RealFs};
use sharestate::inspect::{Progress, Reader};
use sharestate::log::{TailReport, TailVerdict};

use crate::args;
use crate::failure::Failure;
use crate::output::{counted, json_line, stdout};
use crate::progress::Bar;

#[derive(Serialize)]
struct Facts {
    dir: PathBuf,
    uuid: String,
    format_version: u32,
    incarnation: u64,
    segment_bytes: u64,
    first_lsn: u64,
    last_lsn: u64,
    /// Proven to have been synced, by what follows in the log or by the snapshot.
    vouched_lsn: u64,
    snapshot_lsn: u64,
    purge_floor: u64,
    replayed: u64,
    torn_tail: Option<Torn>,
    segments: Vec<Segment>,
    rows: Rows,
    bytes: Bytes,
    unknown_files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Torn {
    file: PathBuf,
    offset: u64,
    bytes: u64,
    lsn: u64,
    reason: String,
}

#[derive(Serialize)]
struct Segment {
    file: PathBuf,
    first_lsn: u64,
    last_lsn: u64,
    bytes: u64,
}

#[derive(Serialize, Default)]
struct Rows {
    partitions: u64,
    batches: u64,
    /// Ranges of prepared acks.
    pending: u64,
    pending_offsets: u64,
    producers: u64,
    /// Transactions with something prepared.
    open_epochs: u64,
    orphaned_epochs: u64,
}

#[derive(Serialize)]
struct Bytes {
    log: u64,
    snapshot: u64,
    quarantine: u64,
}

pub fn run(args: &args::Dir) -> Result<ExitCode, Failure> {
    let mut reader = Reader::open(&args.dir)?;
    let facts = facts(&args.dir, &mut reader)?;
    let mut out = stdout();
    if args.json {
        json_line(&mut out, &facts)?;
    } else {
        print(&mut out, &facts)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn facts(dir: &Path, reader: &mut Reader) -> Result<Facts, Failure> {
    let rows = count(reader)?;
    let report = reader.report();
    let identity = reader.identity();
    let torn_tail = match &report.verdict {
        TailVerdict::Torn(torn) => Some(Torn {
            file: torn.path.clone(),
            offset: torn.offset,
            bytes: torn.bytes,
            lsn: torn.lsn,
            reason: torn.reason.clone(),
        }),
        _ => None,
    };
    Ok(Facts {
        dir: dir.to_owned(),
        uuid: identity.uuid.to_string(),
        format_version: FORMAT_VERSION,
        incarnation: identity.incarnation,
        segment_bytes: identity.segment_bytes,
        first_lsn: report.first_lsn,
        last_lsn: report.last_lsn,
        vouched_lsn: report.vouched_lsn,
        snapshot_lsn: reader.snapshot_lsn(),
        purge_floor: reader.purge_floor(),
        replayed: reader.replayed(),
        torn_tail,
        segments: segments(report),
        rows,
        bytes: Bytes {
            log: report.segments.iter().map(|segment| segment.bytes).sum(),
            snapshot: bytes_in(&dir.join("snapshot"))?,
            quarantine: bytes_in(&dir.join("quarantine"))?,
        },
        unknown_files: report.unknown_files.clone(),
    })
}

/// A segment goes on to where the next one begins.
fn segments(report: &TailReport) -> Vec<Segment> {
    let ends = report.segments.iter().skip(1).map(|next| next.first_lsn.saturating_sub(1));
    let ends = ends.chain([report.last_lsn]);
    let pairs = report.segments.iter().zip(ends);
    pairs
        .map(|(segment, last_lsn)| Segment {
            file: segment.path.clone(),
            first_lsn: segment.first_lsn,
            last_lsn,
            bytes: segment.bytes,
        })
        .collect()
}

fn count(reader: &mut Reader) -> Result<Rows, Failure> {
    const PAGE: usize = 1_024;
    let bar = Bar::new();
    let total = reader.stats().partitions;
    let mut rows = Rows::default();
    reader.for_each_partition::<Failure>(&mut |_, row| {
        rows.partitions += 1;
        rows.batches += row.batches.len() as u64;
        rows.pending += row.pending.len() as u64;
        let offsets = row.pending.iter().map(|ack| ack.last_offset.abs_diff(ack.first_offset) + 1);
        rows.pending_offsets = offsets.fold(rows.pending_offsets, u64::saturating_add);
        if rows.partitions % PAGE as u64 == 0 {
            let done = rows.partitions;
            bar.show(Progress { stage: "counting rows", done, total: total.max(done) });
        }
        Ok(())
    })?;
    let mut after = None;
    loop {
        let (page, next) = reader.producers(after, PAGE)?;
        rows.producers += page.len() as u64;
        for (_, producer) in &page {
            rows.open_epochs += producer.open.len() as u64;
            let orphaned = producer.open.keys().filter(|epoch| producer.orphaned(**epoch));
            rows.orphaned_epochs += orphaned.count() as u64;
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(rows),
        }
    }
}

/// Size of all files in a directory; 0 when there is none.
fn bytes_in(dir: &Path) -> Result<u64, FsError> {
    if !RealFs.exists(dir)? {
        return Ok(0);
    }
    Ok(RealFs.list(dir)?.iter().filter(|entry| !entry.is_dir).map(|entry| entry.len).sum())
}

fn print(out: &mut impl Write, facts: &Facts) -> io::Result<()> {
    writeln!(out, "store        {}", facts.dir.display())?;
    writeln!(out, "uuid         {}", facts.uuid)?;
    writeln!(out, "format       {}", facts.format_version)?;
    writeln!(out, "incarnation  {}", facts.incarnation)?;
    writeln!(
        out,
        "log          LSN {} to {}, proven synced to {}; {} bytes",
        facts.first_lsn, facts.last_lsn, facts.vouched_lsn, facts.bytes.log
    )?;
    for segment in &facts.segments {
        let name = segment.file.file_name().unwrap_or(segment.file.as_os_str());
        let name = name.display();
        let lsns = if segment.last_lsn < segment.first_lsn {
            "no entries yet".to_owned()
        } else {
            format!("LSN {} to {}", segment.first_lsn, segment.last_lsn)
        };
        writeln!(out, "  {name}  {} bytes, {lsns}", segment.bytes)?;
    }
    match &facts.torn_tail {
        None => writeln!(out, "log end      clean")?,
        Some(torn) => writeln!(
            out,
            "log end      unfinished frame at byte {} of {}: {} bytes, {}",
            torn.offset,
            torn.file.display(),
            torn.bytes,
            torn.reason
        )?,
    }
    writeln!(
        out,
        "snapshot     LSN {}, {} of the log on top; log needed above LSN {}; {} bytes",
        facts.snapshot_lsn,
        if facts.replayed == 1 { "1 entry".into() } else { format!("{} entries", facts.replayed) },
        facts.purge_floor,
        facts.bytes.snapshot
    )?;
    writeln!(
        out,
        "rows         {} with {} batches and {} ({}); {} with {} ({} orphaned)",
        counted(facts.rows.partitions, "share partition"),
        facts.rows.batches,
        counted(facts.rows.pending, "pending ack range"),
        counted(facts.rows.pending_offsets, "offset"),
        counted(facts.rows.producers, "producer"),
        counted(facts.rows.open_epochs, "open epoch"),
        facts.rows.orphaned_epochs
    )?;
    writeln!(out, "quarantine   {} bytes", facts.bytes.quarantine)?;
    for file in &facts.unknown_files {
        writeln!(out, "unknown file {}", file.display())?;
    }
    Ok(())
}
