//! The child process: how it is started, heard and killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

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
pub enum When {
    /// So long after its start.
    After(Duration),
    /// So long after so many acknowledgements.
    Acknowledged(u64, Duration),
}

/// A running child.
pub struct Child {
    process: process::Child,
    lines: Receiver<std::io::Result<String>>,
}

impl Child {
    pub fn start(args: &args::Demo, dir: &Path, seed: u64, round: u32) -> Result<Self, Failure> {
        let failed =
            |error| Failure::cannot_run(format!("the child could not be started: {error}"));
        let mut process = Command::new(program().map_err(failed)?)
            .arg("demo-worker")
            .args(["--seed", &seed.to_string(), "--round", &round.to_string()])
            .args(["--consumers", &args.consumers.to_string()])
            .args(["--partitions", &args.partitions.to_string()])
            .arg("--")
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
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

    /// Hears the child, kills it when it is time, and hears what it still said.
    pub fn listen_until_killed(&mut self, when: When, oracle: &mut Oracle) -> Result<(), Failure> {
        let limit = match when {
            When::After(_) => u64::MAX,
            When::Acknowledged(acks, _) => oracle.acknowledged + acks,
        };
        let mut kill_at = match when {
            When::After(wait) => Some(Instant::now() + wait),
            When::Acknowledged(..) => None,
        };
        loop {
            let now = Instant::now();
            if kill_at.is_some_and(|at| at <= now) {
                break;
            }
            let wait = kill_at.map_or(PATIENCE, |at| at - now);
            match self.lines.recv_timeout(wait) {
                Ok(line) => hear(oracle, line)?,
                Err(RecvTimeoutError::Timeout) if kill_at.is_some() => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.kill()?;
                    return Err(Failure::cannot_run("the child does nothing any more"));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
            if let When::Acknowledged(_, wait) = when
                && kill_at.is_none()
                && oracle.acknowledged >= limit
            {
                kill_at = Some(Instant::now() + wait);
            }
        }
        self.kill()?;
        while let Ok(line) = self.lines.recv() {
            hear(oracle, line)?;
        }
        Ok(())
    }

    /// SIGKILL, which no process can answer.
    fn kill(&mut self) -> Result<(), Failure> {
        let killed = self.process.kill().and_then(|()| self.process.wait());
        match killed {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::cannot_run(format!("the child cannot be killed: {error}"))),
        }
    }

    /// The child ended by itself; it has told why on the standard error.
    fn ended(&mut self) -> Failure {
        let status = self.process.wait();
        let code = status.as_ref().ok().and_then(process::ExitStatus::code);
        let code = code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let error = format!("the child ended by itself: {how}").into();
        Failure::Told { code: code.unwrap_or(CANNOT_RUN), error }
    }
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
