//! Copies and digests of a store directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Space without content.
const RESERVE: &str = "RESERVE";

/// Copies a directory, replacing an earlier copy.
pub fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    remove(to)?;
    walk(from, &mut |path| {
        let target = to.join(path.strip_prefix(from).unwrap_or(path));
        if path.is_dir() { fs::create_dir_all(target) } else { fs::copy(path, target).map(drop) }
    })
    .map_err(|error| told("copied", from, &error))
}

/// Removes a directory, if there is one.
pub fn remove(dir: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told("removed", dir, &error)),
        _ => Ok(()),
    }
}

/// Every name in a directory with its length and a checksum of its content.
pub fn digest(dir: &Path) -> Result<Vec<(PathBuf, u64, u32)>, Failure> {
    let mut files = Vec::new();
    walk(dir, &mut |path| {
        let bytes = if path.is_dir() { Vec::new() } else { fs::read(path)? };
        files.push((path.to_owned(), bytes.len() as u64, crc32fast::hash(&bytes)));
        Ok(())
    })
    .map_err(|error| told("read", dir, &error))?;
    Ok(files)
}

/// Visits a directory and everything below it, in the order of names, each before what it holds.
fn walk(dir: &Path, visit: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    visit(dir)?;
    let entries = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths.iter().filter(|path| !path.ends_with(RESERVE)) {
        if path.is_dir() {
            walk(path, visit)?;
        } else {
            visit(path)?;
        }
    }
    Ok(())
}

fn told(done: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::cannot_run(format!("{} could not be {done}: {error}", path.display()))
}

/// Removes a file, if there is one.
pub fn remove_file(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told("removed", path, &error)),
        _ => Ok(()),
    }
}
