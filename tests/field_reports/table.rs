//! `docs/field-reports.md` against the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names of all tests of the project.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut dirs: Vec<PathBuf> = ["src", "tests"].iter().map(|dir| root.join(dir)).collect();
    let mut names = BTreeSet::new();
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("readable") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(tests_of(&std::fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    names
}

/// The functions behind a test attribute, and those of `proptest!`, which carry it inside.
fn tests_of(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while lines.any(|line| line == "#[test]") {
        let signature = lines.find(|line| !line.starts_with("#[") && !line.starts_with("//"));
        let name = signature.and_then(|line| line.strip_prefix("fn "));
        names.extend(name.and_then(|rest| rest.split('(').next()).map(str::to_owned));
    }
    names
}

#[test]
fn every_report_is_taken_by_a_test_that_exists_or_says_why_not() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/field-reports.md");
    let page = std::fs::read_to_string(page).expect("readable");
    let tests = tests();
    let (mut ids, mut taken, mut not_ours) = (BTreeSet::new(), 0, 0);
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id ")) {
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, what, answer] = columns[..] else { panic!("three columns: {line}") };
        assert!(ids.insert(id), "{id} stands twice");
        assert!(!what.is_empty() && !answer.is_empty(), "{line}");
        if let Some(reason) = answer.strip_prefix("not ours: ") {
            assert!(reason.len() > 10, "{id}: a reason");
            not_ours += 1;
            continue;
        }
        let named: Vec<_> = answer.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{id}: no test named");
        for name in named {
            assert!(tests.contains(name), "{id}: there is no test {name}");
        }
        taken += 1;
    }
    println!("field-reports={} taken={taken} not-ours={not_ours}", ids.len());
    let ledger: Vec<String> = (1..=129).map(|n| format!("T{n}")).collect();
    let missing: Vec<_> = ledger.iter().filter(|id| !ids.contains(id.as_str())).collect();
    assert!(missing.is_empty(), "rows of the ledger without a line: {missing:?}");
    assert_eq!(ids.len(), 129 + 160);
}
