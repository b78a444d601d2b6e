//! The file layer is the only place that touches files.

use std::fs;
use std::path::{Path, PathBuf};

/// The only sources that may use the operating system's files: the layer itself, the command line,
/// and RocksDB, which does its own I/O.
const ALLOWED: [&str; 3] = ["fsio/", "bin/", "snapshot/rocks.rs"];

const FORBIDDEN: [&str; 5] = ["std::fs", "File::open", "File::create", "OpenOptions", "rustix::fs"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("the source directory is readable") {
        let path = entry.expect("the source directory is readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_source_outside_the_file_layer_touches_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut checked = 0;
    let mut offences = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).expect("inside").to_string_lossy().replace('\\', "/");
        if ALLOWED.iter().any(|allowed| name.starts_with(allowed)) {
            continue;
        }
        checked += 1;
        let text = fs::read_to_string(&path).expect("sources are UTF-8");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if FORBIDDEN.iter().any(|forbidden| code.contains(forbidden)) {
                offences.push(format!("src/{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    println!("{checked} sources checked");
    assert!(checked > 10, "the sources were found");
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}
