//! Where the store is made.

use std::path::{Path, PathBuf};

use sharestate::fsio::{Fs as _, RealFs};

use crate::failure::Failure;

/// A directory of the user's, which is kept, or a temporary one.
pub enum Place {
    Temporary(tempfile::TempDir),
    Kept(PathBuf),
}

impl Place {
    /// `dir` must be empty or missing. `who` wants it.
    pub fn new(dir: Option<&Path>, who: &str) -> Result<Self, Failure> {
        let Some(dir) = dir else {
            let made = tempfile::Builder::new().prefix(&format!("sharestate-{who}-")).tempdir();
            return made.map(Self::Temporary).map_err(|error| {
                Failure::cannot_run(format!("no temporary directory could be made: {error}"))
            });
        };
        if RealFs.exists(dir)? && !RealFs.list(dir)?.is_empty() {
            let text =
                format!("{} is not empty; the {who} makes a store of its own", dir.display());
            return Err(Failure::cannot_run(text));
        }
        Ok(Self::Kept(dir.to_owned()))
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(dir) => dir.path(),
            Self::Kept(dir) => dir,
        }
    }

    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Temporary(_))
    }

    /// Ends the use of the directory. Answers where it is if it is still there.
    pub fn keep(self, keep: bool) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Temporary(dir) if keep => Ok(Some(dir.keep())),
            Self::Temporary(dir) => match dir.close() {
                Ok(()) => Ok(None),
                Err(error) => Err(Failure::cannot_run(format!("leftovers remain: {error}"))),
            },
            Self::Kept(dir) => Ok(Some(dir)),
        }
    }
}
