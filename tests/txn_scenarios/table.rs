//! `docs/scenarios.md` against the sources of this suite.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The groups of scenarios and how many each has.
const GROUPS: [(char, u32); 7] =
    [('S', 24), ('M', 20), ('F', 12), ('R', 18), ('X', 15), ('O', 6), ('C', 9)];

/// Id to the last column of its row.
fn rows() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scenarios.md");
    let text = std::fs::read_to_string(path).expect("readable");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id")) {
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, what, answer] = columns[..] else { panic!("three columns: {line}") };
        assert!(!what.is_empty() && !answer.is_empty(), "{line}");
        let before = rows.insert(id.to_owned(), answer.to_owned());
        assert!(before.is_none(), "{id} stands twice");
    }
    rows
}

/// The names of all tests of this suite.
fn tests() -> BTreeSet<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/txn_scenarios");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(dir).expect("readable") {
        let text = std::fs::read_to_string(entry.expect("entry").path()).expect("UTF-8");
        let mut lines = text.lines();
        while lines.any(|line| line == "#[test]") {
            let signature = lines.next().unwrap_or_default();
            let name = signature.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            names.insert(name.unwrap_or_else(|| panic!("no name: {signature}")).to_owned());
        }
    }
    names
}

/// `s_6_` for `S-6`.
fn prefix(id: &str) -> String {
    format!("{}_", id.to_lowercase().replace('-', "_"))
}

#[test]
fn every_scenario_stands_in_the_table_and_every_test_in_the_table_exists() {
    let (rows, tests) = (rows(), tests());
    let ids: BTreeSet<String> = GROUPS
        .iter()
        .flat_map(|(group, count)| (1..=*count).map(move |number| format!("{group}-{number}")))
        .collect();
    assert_eq!(rows.keys().cloned().collect::<BTreeSet<_>>(), ids);
    let mut listed = BTreeSet::new();
    for (id, answer) in &rows {
        if answer.starts_with("broker: ") {
            continue;
        }
        for name in answer.split(", ") {
            let name = name.trim_matches('`').to_owned();
            assert!(tests.contains(&name), "{id}: there is no test {name}");
            assert!(name.starts_with(&prefix(id)), "{id}: {name} is named for another scenario");
            listed.insert(name);
        }
    }
    let unlisted: Vec<_> = tests
        .iter()
        .filter(|name| ids.iter().any(|id| name.starts_with(&prefix(id))))
        .filter(|name| !listed.contains(*name))
        .collect();
    assert_eq!(unlisted, Vec::<&String>::new(), "tests that the table does not name");
    println!("scenarios={} tests={}", rows.len(), listed.len());
}
