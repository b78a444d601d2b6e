//! Faults below the store: how a child is run with the shim of `tools/faultshim`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::rng::Rng;
use crate::failure::Failure;

/// Names the shim when it is not beside the program.
pub const SHIM_VARIABLE: &str = "SHARESTATE_FAULTSHIM";

/// Where the shim takes its rules from, and where it tells what it did.
const PLAN: &str = "FAULTSHIM_PLAN";
const LOG: &str = "FAULTSHIM_LOG";

const FILE_NAME: &str = "faultshim.so";

/// Not for good: whoever repeats an interrupted call, as everybody must, would do so for ever.
const INTERRUPTED: &str = "EINTR";

/// The first of [`KINDS`] poison the store most often.
const GRAVE_KINDS: usize = 2;

/// Calls that fail, and how.
const KINDS: [(&str, &[&str]); 8] = [
    ("sync", &["EIO", "ENOSPC"]),
    ("write", &["EIO", "ENOSPC", "SHORT", "EINTR"]),
    ("open", &["EIO", "EMFILE", "ENOSPC"]),
    ("read", &["EIO", "SHORT", "EINTR"]),
    ("allocate", &["ENOSPC", "EIO"]),
    ("truncate", &["EIO"]),
    ("rename", &["EIO", "ENOSPC"]),
    ("unlink", &["EIO", "EACCES"]),
];

/// Faults of one child.
#[derive(Debug, Clone)]
pub struct Faults {
    shim: PathBuf,
    log: PathBuf,
    dir: PathBuf,
    seed: u64,
    /// In the words of the shim.
    pub plan: String,
}

/// One call that fails.
#[derive(Debug, Clone)]
pub struct Site {
    pub kind: &'static str,
    pub error: &'static str,
    pub call: u64,
    /// All later calls of the kind fail as well.
    pub sticky: bool,
}

impl Faults {
    /// Finds the shim. `dir` is the store's; `log` is where the shim tells what it did.
    pub fn new(shim: Option<&Path>, dir: &Path, log: PathBuf) -> Result<Self, Failure> {
        let shim = find(shim)?;
        Ok(Self { shim, log, dir: dir.to_owned(), seed: 0, plan: String::new() })
    }

    /// One to three kinds of calls fail now and then, or one at a drawn call and from then on.
    pub fn drawn(&self, rng: &mut Rng) -> Self {
        let mut rules = Vec::new();
        for _ in 0..=rng.below(3) {
            // Half of them where it matters most.
            let kinds = if rng.chance(50) { KINDS.len() } else { GRAVE_KINDS };
            let (kind, errors) = KINDS[rng.below(kinds as u64) as usize];
            let error = errors[rng.below(errors.len() as u64) as usize];
            let rule = match rng.below(4) {
                1 if error != INTERRUPTED => format!("@{}+", 1 + rng.below(150)),
                0 | 1 => format!("@{}", 1 + rng.below(150)),
                2 => format!("%{}", 20 + rng.below(80)),
                _ => format!("%{}", 100 + rng.below(900)),
            };
            rules.push(format!("{kind}:{error}{rule}"));
        }
        Self { plan: rules.join(","), seed: rng.next(), ..self.clone() }
    }

    /// One call fails.
    pub fn at(&self, site: &Site) -> Self {
        let Site { kind, error, call, sticky } = site;
        let later = if *sticky { "+" } else { "" };
        Self { plan: format!("{kind}:{error}@{call}{later}"), ..self.clone() }
    }

    /// Every short or interrupted call is one that the store has to live with.
    pub fn are_harmless(&self) -> bool {
        let errors = self.plan.split(',').filter_map(|rule| rule.split_once(':'));
        errors.map(|(_, error)| error).all(|e| e.starts_with("SHORT") || e.starts_with("EINTR"))
    }

    /// Sets a child up.
    pub fn apply(&self, command: &mut Command) -> Result<(), Failure> {
        super::evidence::remove_file(&self.log)?;
        command
            .env("LD_PRELOAD", &self.shim)
            .env("FAULTSHIM_DIR", &self.dir)
            .env(LOG, &self.log)
            .env(PLAN, &self.plan)
            .env("FAULTSHIM_SEED", self.seed.to_string());
        Ok(())
    }

    /// How many calls failed.
    pub fn injected(&self) -> Result<u64, Failure> {
        Ok(self.read_log()?.lines().filter(|line| line.starts_with("fault ")).count() as u64)
    }

    /// Every place at which a child that ended by itself can be made to fail: each kind of call,
    /// the first, second, third ... of it, each error, once and for good.
    pub fn sites(&self) -> Result<Vec<Site>, Failure> {
        let log = self.read_log()?;
        let line = log.lines().find_map(|line| line.strip_prefix("calls "));
        let line = line.ok_or_else(|| Failure::cannot_run("the shim counted no calls"))?;
        let mut sites = Vec::new();
        for (kind, errors) in KINDS {
            let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
            let count = fields.find(|(name, _)| *name == kind).map(|(_, count)| count.parse());
            for call in 1..=count.and_then(Result::ok).unwrap_or(0) {
                for (error, sticky) in errors.iter().flat_map(|e| [(*e, false), (*e, true)]) {
                    if error != INTERRUPTED || !sticky {
                        sites.push(Site { kind, error, call, sticky });
                    }
                }
            }
        }
        Ok(sites)
    }

    fn read_log(&self) -> Result<String, Failure> {
        std::fs::read_to_string(&self.log).map_err(|error| {
            let (shim, log) = (self.shim.display(), self.log.display());
            Failure::cannot_run(format!("{shim} was not loaded: it wrote no {log}: {error}"))
        })
    }
}

/// In the child: whether every sync fails from here on.
pub fn no_sync_succeeds() -> bool {
    let plan = std::env::var(PLAN).unwrap_or_default();
    let mut rules = plan.split(',').filter(|rule| rule.starts_with("sync:"));
    // With several, the log does not tell which of them has struck.
    let (Some(rule), None) = (rules.next(), rules.next()) else { return false };
    let log = || std::env::var_os(LOG).and_then(|path| std::fs::read_to_string(path).ok());
    rule.ends_with('+') && log().is_some_and(|log| log.contains("fault sync "))
}

fn find(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = std::env::var_os(SHIM_VARIABLE).map(PathBuf::from);
    let beside = || {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.join(FILE_NAME)).filter(|path| path.exists())
    };
    let found = given.map(Path::to_owned).or(named).or_else(beside);
    let whole = found.as_deref().map(Path::canonicalize);
    match (whole, found) {
        (Some(Ok(path)), _) => Ok(path),
        (Some(Err(error)), Some(path)) => {
            Err(Failure::cannot_run(format!("the fault shim {}: {error}", path.display())))
        }
        _ => Err(Failure::cannot_run(format!(
            "--faults needs the fault shim: build it with `make faultshim`, which needs a C \
             compiler, and name it with --shim or {SHIM_VARIABLE}, or put {FILE_NAME} beside this \
             program"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_and_interrupted_calls_are_harmless() {
        let faults = |plan: &str| Faults {
            shim: PathBuf::new(),
            log: PathBuf::new(),
            dir: PathBuf::new(),
            seed: 0,
            plan: plan.to_owned(),
        };
        assert!(faults("write:SHORT%3,read:EINTR@2+").are_harmless());
        assert!(!faults("write:SHORT%3,read:EIO@2").are_harmless());
    }
}
