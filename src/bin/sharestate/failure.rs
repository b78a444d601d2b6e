//! Errors as the command tells them, and their exit codes.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use sharestate::fsio::FsError;
use sharestate::inspect::{DumpError, ImportError};
use sharestate::kafka_log::ExportError;
use sharestate::snapshot::SnapshotError;
use sharestate::{BackupError, CheckpointError, ErrorClass, OpenError, RepairError, StoreError};

/// Exit code: damage was found.
pub const DAMAGE: u8 = 1;
/// Exit code: the command could not run.
pub const CANNOT_RUN: u8 = 2;

/// Why the command ends. Prints as one line with all causes.
#[derive(Debug)]
pub enum Failure {
    /// Nobody reads the output any more.
    Quiet,
    /// Something to tell.
    Told { code: u8, error: Box<dyn Error + Send + Sync> },
}

impl Failure {
    /// A failure that only this command knows.
    pub fn cannot_run(text: impl Into<String>) -> Self {
        Self::Told { code: CANNOT_RUN, error: text.into().into() }
    }

    fn new(is_damage: bool, error: impl Error + Send + Sync + 'static) -> Self {
        Self::Told { code: if is_damage { DAMAGE } else { CANNOT_RUN }, error: Box::new(error) }
    }

    pub fn code(&self) -> ExitCode {
        match self {
            Self::Quiet => ExitCode::SUCCESS,
            Self::Told { code, .. } => ExitCode::from(*code),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Told { error, .. } = self else { return Ok(()) };
        let mut text = error.to_string();
        let mut cause: Option<&dyn Error> = error.source();
        while let Some(error) = cause {
            // Most errors name their cause already.
            let told = error.to_string();
            if !text.contains(&told) {
                text = format!("{text}: {told}");
            }
            cause = error.source();
        }
        let words: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        f.write_str(&words.join(" "))
    }
}

impl From<io::Error> for Failure {
    /// Of the output: files are read through `fsio`, which has an error of its own.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Quiet,
            _ => Self::new(false, error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::new(error.class() == ErrorClass::Corrupt, error)
    }
}

impl From<RepairError> for Failure {
    fn from(error: RepairError) -> Self {
        Self::new(error.class() == ErrorClass::Corrupt, error)
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        Self::new(error.class() == ErrorClass::Corrupt, error)
    }
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        Self::new(error.is_corruption(), error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.class() == ErrorClass::Corrupt, error)
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let is_damage = matches!(&error, CheckpointError::Snapshot(e) if e.is_corruption());
        Self::new(is_damage, error)
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self::new(error.is_corruption(), error)
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Self::new(false, error)
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        Self::new(false, error)
    }
}

impl From<DumpError<io::Error>> for Failure {
    fn from(error: DumpError<io::Error>) -> Self {
        match error {
            DumpError::Open(error) => error.into(),
            DumpError::Visit(error) => error.into(),
            other => Self::new(false, other),
        }
    }
}
