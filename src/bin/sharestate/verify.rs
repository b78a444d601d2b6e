//! `verify`

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use sharestate::inspect::{Finding, TailNote, Verdict, VerifyReport, verify};

use crate::args;
use crate::failure::{DAMAGE, Failure};
use crate::output::{counted, json_line, stdout};
use crate::progress::Bar;

#[derive(Serialize)]
struct Report<'a> {
    verdict: &'static str,
    uuid: Option<String>,
    first_lsn: Option<u64>,
    last_lsn: Option<u64>,
    snapshot_lsn: Option<u64>,
    segments: Option<usize>,
    frames: Option<u64>,
    entries: u64,
    replayed: u64,
    partitions: u64,
    batches: u64,
    pending: u64,
    producers: u64,
    torn_tail: Option<FindingJson<'a>>,
    findings: Vec<FindingJson<'a>>,
    more_findings: u64,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    file: String,
    offset: Option<u64>,
    lsn: Option<u64>,
    expected: &'a str,
    found: &'a str,
}

pub fn run(args: &args::Dir) -> Result<ExitCode, Failure> {
    let bar = Bar::new();
    let report = verify(&args.dir, &mut |progress| bar.show(progress))?;
    drop(bar);
    let mut out = stdout();
    if args.json {
        json_line(&mut out, &json(&report))?;
    } else {
        print(&mut out, &report)?;
    }
    out.flush()?;
    Ok(match report.verdict {
        Verdict::Damage => ExitCode::from(DAMAGE),
        Verdict::Clean | Verdict::Torn(_) => ExitCode::SUCCESS,
    })
}

pub fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Clean => "clean",
        Verdict::Torn(_) => "torn",
        Verdict::Damage => "damage",
    }
}

fn json(report: &VerifyReport) -> Report<'_> {
    let torn_tail = match &report.verdict {
        Verdict::Torn(torn) => Some(FindingJson {
            file: torn.path.display().to_string(),
            offset: Some(torn.offset),
            lsn: Some(torn.lsn),
            expected: "a frame, or zeros",
            found: &torn.reason,
        }),
        _ => None,
    };
    let log = report.log.as_ref();
    Report {
        verdict: verdict_name(&report.verdict),
        uuid: report.identity.map(|identity| identity.uuid.to_string()),
        first_lsn: log.map(|log| log.first_lsn),
        last_lsn: log.map(|log| log.last_lsn),
        snapshot_lsn: report.snapshot_lsn,
        segments: log.map(|log| log.segments.len()),
        frames: log.map(|log| log.frames),
        entries: report.entries,
        replayed: report.replayed,
        partitions: report.rows.partitions,
        batches: report.rows.batches,
        pending: report.rows.pending,
        producers: report.rows.producers,
        torn_tail,
        findings: report.findings.iter().map(finding).collect(),
        more_findings: report.more_findings,
    }
}

fn finding(finding: &Finding) -> FindingJson<'_> {
    FindingJson {
        file: finding.file.display().to_string(),
        offset: finding.offset,
        lsn: finding.lsn,
        expected: &finding.expected,
        found: &finding.found,
    }
}

fn print(out: &mut impl Write, report: &VerifyReport) -> io::Result<()> {
    for finding in &report.findings {
        writeln!(out, "damage: {finding}")?;
    }
    if report.more_findings > 0 {
        writeln!(out, "damage: {} more", counted(report.more_findings, "finding"))?;
    }
    if let Some(log) = &report.log {
        writeln!(
            out,
            "log       LSN {} to {}: {}, {}, {} entries decoded, {} not in the snapshot yet",
            log.first_lsn,
            log.last_lsn,
            counted(log.segments.len() as u64, "segment"),
            counted(log.frames, "frame"),
            report.entries,
            report.replayed
        )?;
    }
    if let Some(lsn) = report.snapshot_lsn {
        writeln!(
            out,
            "snapshot  LSN {lsn}: {} with {} batches and {}, {}",
            counted(report.rows.partitions, "share partition"),
            report.rows.batches,
            counted(report.rows.pending, "pending ack range"),
            counted(report.rows.producers, "producer")
        )?;
    }
    match &report.verdict {
        Verdict::Clean => writeln!(out, "verdict   clean"),
        Verdict::Torn(torn) => {
            writeln!(out, "verdict   torn, which is harmless: {}", TailNote(torn))
        }
        Verdict::Damage => {
            let findings = report.findings.len() as u64 + report.more_findings;
            writeln!(out, "verdict   damage: {}", counted(findings, "finding"))
        }
    }
}
