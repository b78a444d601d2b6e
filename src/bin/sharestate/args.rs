//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use sharestate::SharePartitionKey;
use uuid::Uuid;

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 damage found, in the store or in a segment of Kafka's, or something lost, \
invented or wrong in the demo or under torture; 2 could not run (usage, not a store, in use, newer format, bad JSON, ...).

Inspect, dump, show, pending, producers, verify and export change nothing and also work beside a \
running store.";

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
    /// List prepared acknowledgements, oldest first
    Pending(Pending),
    /// List what is remembered of transactional producers
    Producers(Dir),
    /// End one open transaction by hand
    Resolve(Resolve),
    /// Check the whole log and the whole snapshot
    Verify(Dir),
    /// Cut an unfinished end of the log; with --salvage, give up what is damaged
    Repair(Repair),
    /// Copy a store that nobody has open
    Backup(Backup),
    /// Make a store of a backup
    Restore(Restore),
    /// Kill a busy store again and again, and compare what is left with what was acknowledged
    Demo(Demo),
    /// Kill a busy store at any moment, stop it, let its disk fail; exit 1 if anything goes wrong
    Torture(Torture),
    /// The child of `demo` and `torture`
    #[command(hide = true)]
    CrashWorker(Worker),
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

/// An entry is what one epoch of one producer holds prepared in one share partition. All filters
/// that are given must match. `*` marks an entry that holds the start offset of its share
/// partition: nothing before its marker moves it.
#[derive(Debug, clap::Args)]
pub struct Pending {
    /// The store
    pub dir: PathBuf,
    /// Only what was staged so long ago or longer, such as 30s, 5m, 2h or 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_millis)]
    pub older_than: Option<i64>,
    /// Only of this producer
    #[arg(long, value_name = "N")]
    pub producer_id: Option<i64>,
    /// Only of transactional ids that begin so
    #[arg(long, value_name = "P")]
    pub transactional_id_prefix: Option<String>,
    /// Only in this group
    #[arg(long, value_name = "G")]
    pub group: Option<String>,
    /// Only in this topic
    #[arg(long, value_name = "UUID")]
    pub topic: Option<Uuid>,
    /// Only orphaned: the producer went on, only their own marker or an operator ends them
    #[arg(long)]
    pub orphaned: bool,
    /// Print a JSON object per entry and, as the last line, one with the totals
    #[arg(long)]
    pub json: bool,
}

const RESOLVE_HELP: &str = "\
Use it for a transaction whose marker will never come. Under transaction version 2 Kafka's own \
abort tool usually cannot end such an orphan: the marker that it sends carries an epoch that is \
remembered already, and changes nothing. This is the dependable way.

The transaction ends as by its own marker: a marker that comes later is a repeat, and a late \
stage is refused. It is logged as an operator's act, as which `dump` and `producers` show it. \
Nothing can take it back: find out first how the transaction ended for everything else that took \
part in it.";

/// Resolves everything that a producer holds prepared at one epoch, in all share partitions.
#[derive(Debug, clap::Args)]
#[command(after_help = RESOLVE_HELP, allow_negative_numbers = true)]
#[command(group(ArgGroup::new("outcome").required(true).args(["commit", "abort"])))]
pub struct Resolve {
    /// The store; must not be open elsewhere
    pub dir: PathBuf,
    /// The producer
    #[arg(long, value_name = "N")]
    pub producer_id: i64,
    /// The epoch at which the acks were staged, as `pending` lists it
    #[arg(long, value_name = "E")]
    pub epoch: i16,
    /// Make the acks final
    #[arg(long)]
    pub commit: bool,
    /// Undo the acks
    #[arg(long)]
    pub abort: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const REPAIR_HELP: &str = "\
Without --salvage only that is done which opening the store would do as well: an unfinished end of \
the log, as a crash leaves it, is cut. It is copied to quarantine/ first; without the copy nothing \
is cut.

With --salvage the longest part of the log that follows the snapshot without a gap is kept, and \
the rest is given up. Everything is copied to quarantine/ first. What is kept and what is lost is \
shown, and asked about, before anything is changed. Look for a backup first.

Exit codes: 0 nothing to do, or done; 1 damage that this call does not repair; 2 could not run \
(usage, not a store, in use, not confirmed, disk full, ...). After exit code 2 of an interrupted \
salvage say --salvage again: it goes on.";

/// Repairs a store that nobody has open.
#[derive(Debug, clap::Args)]
#[command(after_help = REPAIR_HELP)]
pub struct Repair {
    /// The store; must not be open elsewhere
    pub dir: PathBuf,
    /// Give up what is damaged and keep what is provable
    #[arg(long)]
    pub salvage: bool,
    /// Do not ask before a salvage
    #[arg(long, requires = "salvage")]
    pub yes_lose_data: bool,
    /// Tell what would be done, and change nothing
    #[arg(long, conflicts_with = "yes_lose_data")]
    pub dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The whole store is read and checked first and the copy afterwards. A store that a process has
/// open is backed up by that process, with `ShareStore::backup`.
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// The store; must not be open elsewhere
    pub dir: PathBuf,
    /// Where to copy it; does not exist yet, or is an empty directory
    pub target: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The whole backup is read and checked first and the copy afterwards. The new store goes on at
/// LSNs that the original has never given out.
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// The backup, which stays as it is
    pub backup: PathBuf,
    /// Where to make the store; does not exist yet, or is an empty directory
    pub dir: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A duration such as `90s`, in milliseconds.
fn parse_millis(text: &str) -> Result<i64, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let millis = factor.zip(number.parse::<i64>().ok());
    millis
        .and_then(|(factor, number)| number.checked_mul(factor))
        .ok_or_else(|| "a whole number and one of ms, s, m, h, d, such as 30s".to_owned())
}

/// A child process drives a store with simulated share consumers, which also acknowledge inside
/// transactions, and is killed with SIGKILL. The store is then opened and compared with a record,
/// kept outside of it, of every acknowledged operation. An operation that was submitted but not
/// answered may be there or not. Then the markers of the transactions that survived are sent, some
/// twice and some late, and every offset is compared again.
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
    /// Take a staged ack away
    LostStage,
    /// Leave out a marker that counts as acknowledged
    LostMarker,
}

const TORTURE_HELP: &str = "\
The choice of operations, kill times and faults follows from the seed; what happens at which \
moment does not.

Faults are injected by tools/faultshim/faultshim.c, which is loaded below the program and the \
RocksDB inside it. `make faultshim` builds it with the system's C compiler. It is looked for where \
--shim says, then where the variable SHARESTATE_FAULTSHIM says, then as faultshim.so beside this \
program.

After a violation the directory is kept: `store` as it was found, `before` as the kill had left it \
before the recovery; the seed and the round are told.";

/// As the demo, for long: kills after random times, half-written frames, pauses during which a
/// second opener must be refused, transactions that stay open over several restarts, producers that
/// expire; with --faults also calls that fail below the store. Stops at the first violation.
#[derive(Debug, clap::Args)]
#[command(after_help = TORTURE_HELP)]
pub struct Torture {
    /// How often to kill
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub rounds: u32,
    /// Threads that write at once
    #[arg(long, value_name = "W", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub writers: u32,
    /// Share partitions
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub partitions: u32,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Where to work, which is kept; a temporary directory otherwise
    #[arg(long, value_name = "D")]
    pub dir: Option<PathBuf>,
    /// The shortest time until a kill
    #[arg(long, value_name = "DURATION", default_value = "50ms", value_parser = parse_millis)]
    pub shortest: i64,
    /// The longest time until a kill
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_millis)]
    pub longest: i64,
    /// Let calls fail in two of three rounds
    #[arg(long)]
    pub faults: bool,
    /// The fault shim
    #[arg(long, value_name = "FILE", requires = "faults")]
    pub shim: Option<PathBuf>,
    /// Instead of kills: a short script in which one call fails, for at most N calls, kinds of
    /// failures and stores, new and old, spread evenly over all there are
    #[arg(long, value_name = "N", requires = "faults", conflicts_with = "rounds")]
    pub sweep: Option<u32>,
    /// Print JSON: one object
    #[arg(long)]
    pub json: bool,
    /// Change the store behind the record's back in the last round
    #[arg(long, hide = true)]
    pub tamper: Option<Tamper>,
}

#[derive(Debug, clap::Args)]
pub struct Worker {
    pub dir: PathBuf,
    #[arg(long)]
    pub parent: u32,
    #[arg(long)]
    pub seed: u64,
    #[arg(long)]
    pub round: u32,
    #[arg(long)]
    pub consumers: u32,
    #[arg(long)]
    pub partitions: u32,
    /// Its clock is ahead
    #[arg(long)]
    pub days_ahead: u32,
    /// Idle producers expire
    #[arg(long)]
    pub expiring: bool,
    /// Failures are expected
    #[arg(long)]
    pub failing: bool,
    /// Ends by itself after so many operations of each consumer
    #[arg(long)]
    pub ops: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    #[test]
    fn durations_need_a_number_and_a_unit() {
        let good = [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("0s", 0)];
        for (text, millis) in good.into_iter().chain([("2h", 7_200_000), ("1d", 86_400_000)]) {
            assert_eq!(parse_millis(text), Ok(millis));
        }
        for text in ["", "5", "m", "-1s", "1.5h", "1 d", "1w", "9223372036854775807d"] {
            assert!(parse_millis(text).is_err(), "{text}");
        }
    }
}
