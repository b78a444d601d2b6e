//! `import`

use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use sharestate::inspect::{InputFacts, Loaded, load, read_json, read_kafka};
use sharestate::{Create, Options, ShareStore};

use crate::args;
use crate::failure::Failure;
use crate::output::{counted, json_line, stdout};
use crate::progress::Bar;

#[derive(Serialize)]
struct Report {
    files: u64,
    bytes: u64,
    records: u64,
    unknown_records: u64,
    partitions: u64,
    replaced: u64,
    batches: u64,
    dropped_pending: u64,
    last_lsn: u64,
    elapsed_ms: u128,
}

pub fn run(args: &args::Import) -> Result<ExitCode, Failure> {
    let started = std::time::Instant::now();
    let bar = Bar::new();
    let progress = &mut |progress| bar.show(progress);
    // Before the store is opened: opening is a change already.
    let input = if args.json {
        read_json(&args.inputs, progress)?
    } else {
        read_kafka(&args.inputs, progress)?
    };
    let facts = input.facts;
    let mut options = Options::default();
    options.create = if args.create { Create::IfMissing } else { Create::Never };
    let store = ShareStore::open(&args.dir, &options)?;
    let loaded = load(&store, input, args.replace, progress)?;
    let last_lsn = store.progress().durable_lsn;
    store.blocking().close()?;
    drop(bar);
    tell(args, facts, loaded, last_lsn, started.elapsed().as_millis())?;
    Ok(ExitCode::SUCCESS)
}

fn tell(
    args: &args::Import,
    facts: InputFacts,
    loaded: Loaded,
    last_lsn: u64,
    elapsed_ms: u128,
) -> Result<(), Failure> {
    let mut out = stdout();
    if args.report_json {
        let report = Report {
            files: facts.files,
            bytes: facts.bytes,
            records: facts.records,
            unknown_records: facts.unknown_records,
            partitions: loaded.partitions,
            replaced: loaded.replaced,
            batches: loaded.batches,
            dropped_pending: loaded.dropped_pending,
            last_lsn,
            elapsed_ms,
        };
        json_line(&mut out, &report)?;
    } else {
        writeln!(
            out,
            "{} with {} in {} read; {} with {} loaded, {} replaced, in {elapsed_ms} ms; LSN \
             {last_lsn}",
            counted(facts.files, "file"),
            counted(facts.records, if args.json { "line" } else { "record" }),
            counted(facts.bytes, "byte"),
            counted(loaded.partitions, "share partition"),
            if loaded.batches == 1 {
                "1 batch".into()
            } else {
                format!("{} batches", loaded.batches)
            },
            loaded.replaced,
        )?;
        if loaded.dropped_pending > 0 {
            let ranges = counted(loaded.dropped_pending, "range");
            writeln!(out, "{ranges} of staged transactional acks went with what was replaced")?;
        }
        if facts.unknown_records > 0 {
            let records = counted(facts.unknown_records, "record");
            writeln!(out, "{records} of unknown type skipped, as Kafka does")?;
        }
    }
    out.flush()?;
    Ok(())
}
