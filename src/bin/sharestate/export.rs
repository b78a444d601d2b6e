//! `export`

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use sharestate::fsio::{RealFs, write_durably};
use sharestate::inspect::json::PartitionJson;
use sharestate::inspect::{Progress, Reader};
use sharestate::kafka_log::write_segment;
use sharestate::{Clock as _, Partition, SharePartitionKey, SystemClock};

use crate::args;
use crate::failure::Failure;
use crate::output::{counted, error_line, json_line, stdout};
use crate::progress::Bar;

/// Rows between two words of progress.
const STEP: u64 = 1_024;

#[derive(Serialize)]
struct Report<'a> {
    file: &'a Path,
    bytes: u64,
    partitions: u64,
}

pub fn run(args: &args::Export) -> Result<ExitCode, Failure> {
    let mut reader = Reader::open(&args.dir)?;
    if let Some(note) = reader.tail_note() {
        error_line(&note.to_string())?;
    }
    match &args.kafka {
        None => lines(&mut reader)?,
        Some(file) => segment(&mut reader, file, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(reader: &mut Reader) -> Result<(), Failure> {
    let bar = Bar::new();
    let total = reader.stats().partitions;
    let mut done = 0;
    let mut out = stdout();
    reader.for_each_partition(&mut |key, partition| {
        done += 1;
        if done % STEP == 0 {
            bar.show(Progress { stage: "exporting", done, total: total.max(done) });
        }
        json_line(&mut out, &PartitionJson::new(key, partition))
    })?;
    out.flush()?;
    Ok(())
}

fn segment(reader: &mut Reader, file: &Path, json: bool) -> Result<(), Failure> {
    let rows = all(reader)?;
    let records = rows.iter().map(|(key, row)| (key.clone(), &**row));
    let bytes = write_segment(records, 0, SystemClock.now_ms())?;
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name
        .ok_or_else(|| Failure::cannot_run(format!("{} is no name for a file", file.display())))?;
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    write_durably(&RealFs, dir, name, &bytes)?;
    let (bytes, partitions) = (bytes.len() as u64, rows.len() as u64);
    let mut out = stdout();
    if json {
        json_line(&mut out, &Report { file, bytes, partitions })?;
    } else {
        let partitions = counted(partitions, "share partition");
        writeln!(out, "{partitions} in {} written to {}", counted(bytes, "byte"), file.display())?;
    }
    out.flush()?;
    Ok(())
}

type Rows = Vec<(SharePartitionKey, Arc<Partition>)>;

fn all(reader: &mut Reader) -> Result<Rows, Failure> {
    const PAGE: usize = 1_024;
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let (page, next) = reader.partitions(None, after.as_ref(), PAGE)?;
        rows.extend(page);
        match next {
            Some(next) => after = Some(next),
            None => return Ok(rows),
        }
    }
}
