//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use sharestate::SharePartitionKey;

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 damage found, in the store or in a segment of Kafka's, or something lost or \
invented in the demo; 2 could not run (usage, not a store, in use, newer format, bad JSON, ...).

Inspect, dump, show, verify and export change nothing and also work beside a running store.";

/// Durable share-group state: look into a store, move state in and out, watch it survive crashes.
#[derive(Debug, Parser)]
#[command(name = "sharestate", version, about, after_help = EXIT_CODES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load state from Kafka's own log, or from an export
    Import(Import),
    /// Write all share partitions as JSON lines, or as a segment of Kafka's
    Export(Export),
    /// Tell what a store is: identity, LSN range, segments, rows, sizes
    Inspect(Dir),
    /// Print every entry of the log, one line each
    Dump(Dump),
    /// Print one share partition, its offsets drawn as a bar of states
    Show(Show),
    /// Check the whole log and the whole snapshot
    Verify(Dir),
    /// Kill a busy store again and again, and compare what is left with what was acknowledged
    Demo(Demo),
    /// The child of `demo`
    #[command(hide = true)]
    DemoWorker(Worker),
}

#[derive(Debug, clap::Args)]
pub struct Dir {
    /// The store
    pub dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Everything is read and checked before anything is loaded: bad input leaves the store as it was.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The store; must not be open elsewhere
    pub dir: PathBuf,
    /// Segments of __share_group_state, those of one partition in order of their offsets; with
    /// --json files of JSON lines, or - for the standard input
    #[arg(required = true, value_name = "SEGMENT")]
    pub inputs: Vec<PathBuf>,
    /// The inputs are JSON lines as `export` writes them
    #[arg(long)]
    pub json: bool,
    /// Replace share partitions that exist; without it, none may exist
    #[arg(long)]
    pub replace: bool,
    /// Make the store if there is none
    #[arg(long)]
    pub create: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub report_json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The store
    pub dir: PathBuf,
    /// Write a segment of __share_group_state to FILE instead of JSON lines to the standard output
    #[arg(long, value_name = "FILE")]
    pub kafka: Option<PathBuf>,
    /// Print JSON: share partitions are JSON lines anyway, with --kafka the result is as well
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Dump {
    /// The store
    pub dir: PathBuf,
    /// First LSN to print
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub from_lsn: u64,
    /// Print a JSON object per entry
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Show {
    /// The store
    pub dir: PathBuf,
    /// The share partition: group:topic-uuid:partition
    pub key: SharePartitionKey,
    /// Cells in the bar of offsets
    #[arg(long, value_name = "CELLS", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(8..))]
    pub width: u16,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A child process drives a store with simulated share consumers and is killed with SIGKILL. The
/// store is then opened and compared with a record, kept outside of it, of every acknowledged
/// operation. An operation that was submitted but not answered may be there or not.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// How often to kill
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: u32,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Where to make the store, which is kept; a temporary directory otherwise
    #[arg(long, value_name = "D")]
    pub dir: Option<PathBuf>,
    /// Print JSON: an object per round and, as the last line, one for all rounds
    #[arg(long)]
    pub json: bool,
    /// Simulated share consumers
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub consumers: u32,
    /// Share partitions
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub partitions: u32,
    /// Change the store behind the record's back, to show that the comparison finds it
    #[arg(long, hide = true)]
    pub tamper: Option<Tamper>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tamper {
    /// Take something acknowledged away
    Lost,
    /// Add something nobody asked for
    Invented,
}

#[derive(Debug, clap::Args)]
pub struct Worker {
    pub dir: PathBuf,
    #[arg(long)]
    pub seed: u64,
    #[arg(long)]
    pub round: u32,
    #[arg(long)]
    pub consumers: u32,
    #[arg(long)]
    pub partitions: u32,
}
