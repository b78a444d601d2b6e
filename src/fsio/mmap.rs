//! Read-only maps of files, for offline tools.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file mapped for reading. See [`Fs::map`](super::Fs::map) for when it may be used.
#[derive(Debug)]
pub struct Mapped(memmap2::Mmap);

impl Mapped {
    #[allow(unsafe_code)]
    pub(super) fn new(file: &File) -> io::Result<Mapped> {
        // SAFETY: a map is sound while nobody changes or cuts the file. Only sealed segments are
        // mapped: no store writes to them again, and a purge unlinks, which leaves maps intact.
        // Somebody who cuts the file by hand, or a disk that fails, ends the tool with SIGBUS;
        // that is why the engine itself never maps.
        unsafe { memmap2::Mmap::map(file) }.map(Mapped)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
