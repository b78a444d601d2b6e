//! `backup` and `restore`

use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use sharestate::{BackupError, BackupReport, OpenError};

use crate::args;
use crate::failure::Failure;
use crate::output::{json_line, stdout};

#[derive(Serialize)]
struct Report {
    path: String,
    last_lsn: u64,
    next_lsn: u64,
    incarnation: u64,
}

pub fn run(args: &args::Backup) -> Result<ExitCode, Failure> {
    let done = sharestate::backup(&args.dir, &args.target).map_err(|error| match error {
        BackupError::Open(OpenError::Locked { path }) => Failure::cannot_run(format!(
            "the store is in use: {} is locked; the process that has it open makes the backup \
             itself, with ShareStore::backup",
            path.display()
        )),
        error => error.into(),
    })?;
    print(&done, args.json, "backup")
}

pub fn restore(args: &args::Restore) -> Result<ExitCode, Failure> {
    print(&sharestate::restore(&args.backup, &args.dir)?, args.json, "store")
}

fn print(done: &BackupReport, json: bool, what: &str) -> Result<ExitCode, Failure> {
    let BackupReport { path, last_lsn, next_lsn, incarnation } = done;
    let mut out = stdout();
    if json {
        let path = path.display().to_string();
        let (last_lsn, next_lsn, incarnation) = (*last_lsn, *next_lsn, *incarnation);
        json_line(&mut out, &Report { path, last_lsn, next_lsn, incarnation })?;
    } else {
        writeln!(out, "{what:<8}  {}", path.display())?;
        writeln!(out, "holds     everything up to LSN {last_lsn}")?;
        if what == "store" {
            writeln!(out, "goes on   at LSN {next_lsn}, incarnation {incarnation}")?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
