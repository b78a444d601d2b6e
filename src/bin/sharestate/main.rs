//! The `sharestate` command: looks into a store, moves state in and out of it, and shows that a
//! killed one loses nothing.
//!
//! Owns arguments, output and exit codes; everything it tells comes from the library.

mod args;
mod backup;
mod crash;
mod demo;
mod dump;
mod export;
mod failure;
mod import;
mod inspect;
mod output;
mod pending;
mod producers;
mod progress;
mod repair;
mod resolve;
mod show;
mod torture;
mod verify;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let answer = match Args::parse().command {
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Pending(args) => pending::run(&args),
        Command::Producers(args) => producers::run(&args),
        Command::Resolve(args) => resolve::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Torture(args) => torture::run(&args),
        Command::CrashWorker(args) => crash::work(&args),
    };
    match answer {
        Ok(code) => code,
        Err(Failure::Quiet) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to be told when this fails as well.
            let _ = output::error_line(&failure.to_string());
            failure.code()
        }
    }
}
