//! Bugs that other stores once had, put back one at a time to see that a test notices.
//!
//! Only `--cfg sharestate_seeded` brings them in, which no feature can set; without it every
//! question is answered `false` at compile time and nothing of this remains in the library. With
//! it, the environment variable `SHARESTATE_SEEDED` names the one bug of the run.
//! `tools/seeded-bugs.tsv` lists them, `tools/seeded.sh` goes through the list. Those that only some
//! orders of the threads show are in `tools/seeded-models.tsv`; `tools/models.sh` puts them back.

/// Whether the bug with this id is put back.
#[cfg(not(sharestate_seeded))]
pub(crate) const fn bug(_id: &str) -> bool {
    false
}

/// Whether the bug with this id is put back.
#[cfg(sharestate_seeded)]
pub(crate) fn bug(id: &str) -> bool {
    use std::sync::OnceLock;

    const LIST: &str = concat!(
        include_str!("../tools/seeded-bugs.tsv"),
        include_str!("../tools/seeded-models.tsv"),
    );
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let chosen = std::env::var("SHARESTATE_SEEDED").ok().filter(|id| !id.is_empty())?;
        let is_listed = LIST.lines().any(|line| line.split('\t').next() == Some(&*chosen));
        assert!(is_listed, "tools/seeded-*.tsv have no bug {chosen}");
        Some(chosen)
    });
    chosen.as_deref() == Some(id)
}
