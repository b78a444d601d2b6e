//! The child process: how it is started, heard, stopped and killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::faults::Faults;
use super::oracle::Oracle;
use super::wire::Line;
use crate::args;
use crate::failure::{CANNOT_RUN, Failure};

/// A child that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines that wait to be heard.
const WAITING_LINES: usize = 1_024;

/// This very program: Linux finds it even when its file has been replaced meanwhile.
fn program() -> std::io::Result<PathBuf> {
    let own = Path::new("/proc/self/exe");
    if own.exists() { Ok(own.to_owned()) } else { std::env::current_exe() }
}

/// When the child is killed.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// So long from now.
    After(Duration),
    /// So long after so many more acknowledgements.
    Acknowledged(u64, Duration),
    /// Not at all: it ends by itself.
    Ended,
}

/// Why the child is heard no longer.
#[derive(Debug, Clone, Copy)]
pub enum Ending {
    /// It is time; it still runs.
    Due,
    /// It has to be killed as it is.
    Killed,
    ByItself(ExitStatus),
}

/// A running child. It dies with its parent (see [`super::worker`]).
pub struct Child {
    process: process::Child,
    lines: Receiver<std::io::Result<String>>,
}

impl Child {
    pub fn start(args: &args::Worker, faults: Option<&Faults>) -> Result<Self, Failure> {
        let failed =
            |error| Failure::cannot_run(format!("the child could not be started: {error}"));
        let mut command = Command::new(program().map_err(failed)?);
        command
            .arg("crash-worker")
            .args(["--seed", &args.seed.to_string(), "--round", &args.round.to_string()])
            .args(["--consumers", &args.consumers.to_string()])
            .args(["--partitions", &args.partitions.to_string()])
            .args(["--days-ahead", &args.days_ahead.to_string()])
            .args(["--parent", &args.parent.to_string()])
            .args(args.ops.map(|ops| format!("--ops={ops}")))
            .args(args.expiring.then_some("--expiring"))
            .args(args.failing.then_some("--failing"))
            .arg("--")
            .arg(&args.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(faults) = faults {
            faults.apply(&mut command)?;
        }
        let mut process = command.spawn().map_err(failed)?;
        let Some(pipe) = process.stdout.take() else {
            return Err(Failure::cannot_run("the child has no standard output"));
        };
        let (heard, lines) = sync_channel(WAITING_LINES);
        std::thread::spawn(move || {
            // Ends with the pipe, which ends with the child.
            for line in BufReader::new(pipe).lines() {
                if heard.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, lines })
    }

    /// Hears the child until it is time or the child has ended.
    pub fn listen(&mut self, when: &When, oracle: &mut Oracle) -> Result<Ending, Failure> {
        let before = oracle.acknowledged;
        let mut due = match when {
            When::After(wait) => Some(Instant::now() + *wait),
            When::Acknowledged(..) | When::Ended => None,
        };
        loop {
            let now = Instant::now();
            if due.is_some_and(|at| at <= now) {
                return Ok(Ending::Due);
            }
            match self.lines.recv_timeout(due.map_or(PATIENCE, |at| at - now)) {
                Ok(line) => hear(oracle, line)?,
                Err(RecvTimeoutError::Timeout) if due.is_some() => return Ok(Ending::Due),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::cannot_run("the child does nothing any more"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.process.wait();
                    return status.map(Ending::ByItself).map_err(|error| signal_failed(&error));
                }
            }
            if let When::Acknowledged(acks, wait) = when
                && due.is_none()
                && oracle.acknowledged >= before + acks
            {
                due = Some(Instant::now() + *wait);
            }
        }
    }

    /// SIGSTOP. Answers when no thread of the child runs any more.
    pub fn stop(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)?;
        loop {
            match waitpid(self.pid(), WaitOptions::UNTRACED) {
                Ok(Some((_, status))) if status.stopped() => return Ok(()),
                Ok(Some((_, status))) => {
                    return Err(Failure::cannot_run(format!("the child has ended: {status:?}")));
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(signal_failed(&error)),
            }
        }
    }

    pub fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// SIGKILL, which no process can answer; then hears what the child still said.
    pub fn kill(&mut self, oracle: &mut Oracle) -> Result<(), Failure> {
        self.process
            .kill()
            .and_then(|()| self.process.wait())
            .map_err(|error| signal_failed(&error))?;
        while let Ok(line) = self.lines.recv() {
            hear(oracle, line)?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.pid().ok_or_else(|| Failure::cannot_run("the child has no number"))?;
        kill_process(pid, signal).map_err(|error| signal_failed(&error))
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.process.id()).ok().and_then(Pid::from_raw)
    }
}

fn signal_failed(error: &impl std::fmt::Display) -> Failure {
    Failure::cannot_run(format!("the child cannot be stopped, killed or waited for: {error}"))
}

/// Whether the end of a child that was not killed is no failure: it has told why on its standard
/// error.
pub fn judge_ending(status: ExitStatus, may_end: bool) -> Result<(), Failure> {
    if may_end && status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
    let error = format!("the child ended by itself: {status}").into();
    Err(Failure::Told { code: code.unwrap_or(CANNOT_RUN), error })
}

impl Drop for Child {
    fn drop(&mut self) {
        // After an error it may still run.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn hear(oracle: &mut Oracle, line: std::io::Result<String>) -> Result<(), Failure> {
    let told = |error: String| Failure::cannot_run(format!("the child cannot be heard: {error}"));
    let text = line.map_err(|error| told(error.to_string()))?;
    let line: Line =
        serde_json::from_str(&text).map_err(|error| told(format!("{error} in `{text}`")))?;
    oracle.hear(line).map_err(told)
}
