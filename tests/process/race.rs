//! Row 15: whoever holds the store holds it alone.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sharestate::{ErrorClass, OpenError, ShareStore};

use super::child::{Running, job, knob, memory_dir, respawn, say};
use super::support::tree;
use super::work::{Record, made, options};

const PROCESSES: usize = 8;

const RACE: &str = "race::of_eight_processes_that_race_exactly_one_gets_in";
const STOPPED: &str = "race::a_stopped_holder_keeps_everybody_out";
const DELETED: &str = "race::whoever_deletes_the_lock_files_lets_nobody_in";

/// A child that opens the store when it is told to, and keeps it until it is told otherwise.
struct Racer {
    // Closed first: a child that waits for a word ends then.
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    process: Running,
}

impl Racer {
    fn start(test: &str, path: &Path) -> Self {
        let mut command = respawn(test, &[path.to_str().expect("UTF-8")]);
        command.stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().expect("this program");
        let orders = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { orders, answers, process: Running(process) }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the child takes orders");
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.answers.read_line(&mut line).expect("the child answers");
            assert!(read > 0, "the child has ended");
            if let Some(answer) = line.strip_prefix('@') {
                return answer.trim_end().to_owned();
            }
        }
    }

    fn ask(&mut self, order: &str) -> String {
        self.order(order);
        self.answer()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.0.id().try_into().expect("small")).expect("not 0")
    }

    /// Answers when it no longer runs.
    fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).expect("kill");
        let waited = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("waitpid");
        assert!(waited.is_some_and(|(_, status)| status.stopped()));
    }

    fn resume(&self) {
        kill_process(self.pid(), Signal::CONT).expect("kill");
    }
}

/// The child's part.
fn obey(path: &Path) {
    let mut held: Option<ShareStore> = None;
    for order in std::io::stdin().lines() {
        let order = order.expect("an order");
        let mut words = order.split(' ');
        match (words.next(), &held) {
            (Some("open"), None) => match ShareStore::open(path, &options(0)) {
                Ok(store) => {
                    say(&format!("won {}", store.recovery().incarnation));
                    held = Some(store);
                }
                Err(error) => say(&format!("lost {:?} {error}", error.class())),
            },
            (Some("step"), Some(store)) => {
                let next: i64 = words.next().and_then(|word| word.parse().ok()).expect("a number");
                let issued: Vec<i64> = (0..next).collect();
                let mut record = Record::resume(0, &issued, &issued);
                let answer = record.step(store).map_or_else(|e| e.to_string(), |at| at.to_string());
                say(&answer);
            }
            (Some("close"), Some(store)) => {
                store.blocking().close().expect("close");
                held = None;
                say("closed");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn of_eight_processes_that_race_exactly_one_gets_in() {
    if let Some(job) = job() {
        return obey(Path::new(&job[0]));
    }
    let dir = memory_dir();
    let path = dir.path().join("store");
    let mut record = made(&path, &options(0));
    let mut racers: Vec<Racer> = (0..PROCESSES).map(|_| Racer::start(RACE, &path)).collect();
    let races = knob("SHARESTATE_RACES", 100);
    let (mut incarnation, mut losers) = (0, 0);
    for race in 0..races {
        racers.iter_mut().for_each(|racer| racer.order("open"));
        let answers: Vec<String> = racers.iter_mut().map(Racer::answer).collect();
        let won: Vec<usize> =
            (0..PROCESSES).filter(|racer| answers[*racer].starts_with("won ")).collect();
        assert_eq!(won.len(), 1, "race {race}: {answers:?}");
        losers += answers
            .iter()
            .filter(|answer| answer.starts_with("lost Retriable the store is in use"))
            .count();
        let winner = &mut racers[won[0]];
        let raised: u64 = answers[won[0]][4..].parse().expect("a number");
        assert!(raised > incarnation, "race {race}: incarnation {raised} after {incarnation}");
        incarnation = raised;
        let offset = record.next();
        assert_eq!(winner.ask(&format!("step {offset}")), offset.to_string());
        let issued: Vec<i64> = (0..=offset).collect();
        record = Record::resume(0, &issued, &issued);
        assert_eq!(winner.ask("close"), "closed");
    }
    assert_eq!(losers, races * (PROCESSES - 1), "every loser is told so");
    record.check(&ShareStore::open(&path, &options(0)).expect("open"));
    println!("races={races} winners={races} losers={losers} lost=0");
}

/// Everybody else is refused, and touches nothing.
#[track_caller]
fn assert_nobody_gets_in(path: &Path) {
    let before = tree(path);
    let error = ShareStore::open(path, &options(1 << 20)).expect_err("it is held");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Retriable);
    assert_eq!(tree(path), before, "the loser touched something");
}

#[test]
fn a_stopped_holder_keeps_everybody_out() {
    if let Some(job) = job() {
        return obey(Path::new(&job[0]));
    }
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let record = made(&path, &options(64 << 10));
    let mut holder = Racer::start(STOPPED, &path);
    assert!(holder.ask("open").starts_with("won"));
    let offset = record.next();
    assert_eq!(holder.ask(&format!("step {offset}")), offset.to_string());
    holder.stop();
    for _ in 0..5 {
        assert_nobody_gets_in(&path);
    }
    holder.resume();
    // It goes on as if nothing had been.
    assert_eq!(holder.ask(&format!("step {}", offset + 1)), (offset + 1).to_string());
    assert_eq!(holder.ask("close"), "closed");
    let issued: Vec<i64> = (0..offset + 2).collect();
    Record::resume(0, &issued, &issued).check(&ShareStore::open(&path, &options(0)).expect("open"));
}

#[test]
fn whoever_deletes_the_lock_files_lets_nobody_in() {
    if let Some(job) = job() {
        return obey(Path::new(&job[0]));
    }
    for deleted in [&["LOCK"][..], &["snapshot/LOCK"], &["LOCK", "snapshot/LOCK"]] {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("store");
        let record = made(&path, &options(64 << 10));
        let mut holder = Racer::start(DELETED, &path);
        assert!(holder.ask("open").starts_with("won"));
        let offset = record.next();
        assert_eq!(holder.ask(&format!("step {offset}")), offset.to_string());
        holder.stop();
        for name in deleted {
            std::fs::remove_file(path.join(name)).expect("remove");
        }
        assert_nobody_gets_in(&path);
        holder.resume();
        assert_eq!(holder.ask(&format!("step {}", offset + 1)), (offset + 1).to_string());
        assert_eq!(holder.ask("close"), "closed");
        let issued: Vec<i64> = (0..offset + 2).collect();
        let store = ShareStore::open(&path, &options(0)).expect("open");
        Record::resume(0, &issued, &issued).check(&store);
    }
}

#[test]
fn a_store_is_open_once_in_a_process_too() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    drop(made(&path, &options(64 << 10)));
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("symlink");
    let store = ShareStore::open(&path, &options(64 << 10)).expect("open");
    wait_until_it_rests(&path);
    for other in [&path, &link, &path.join("wal/..")] {
        let before = tree(&path);
        let error = ShareStore::open(other, &options(0)).expect_err("it is open");
        assert!(matches!(error, OpenError::Locked { .. }), "{error}");
        assert_eq!(tree(&path), before, "the second opener touched something");
    }
    drop(store);
    ShareStore::open(&link, &options(0)).expect("it is free");
}

/// The mark that vouches for the last frame, and the file for the reserve, come a little later.
fn wait_until_it_rests(path: &Path) {
    let (mut before, mut same) = (tree(path), 0);
    while same < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let now = tree(path);
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
}
