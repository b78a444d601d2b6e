//! Entry bodies of every kind and version. An even first byte: two bytes of kind, one of version,
//! then a raw body. An odd one: a transition is built from what follows and must come back.

use sharestate::codec::{CodecError, EntryKind, decode_transition, encode_transition};

use super::draw::Draw;

pub fn run(input: &[u8]) {
    match input {
        [mode, low, high, version, body @ ..] if mode % 2 == 0 => {
            check_canonical(u16::from_le_bytes([*low, *high]), *version, body);
        }
        [mode, input @ ..] if mode % 2 == 1 => check_round_trip(input),
        _ => {}
    }
}

/// What decodes encodes to the same bytes, and neither a shorter nor a longer body means anything.
pub fn check_canonical(kind: u16, version: u8, body: &[u8]) {
    let is_known = (1..=9).contains(&kind) && version == 1;
    let transition = match decode_transition(kind, version, body) {
        Ok(transition) => transition,
        Err(CodecError::NewerEntry { kind: found, version: of }) => {
            assert!(!is_known && (found, of) == (kind, version));
            return;
        }
        Err(error) => {
            assert!(is_known && !error.to_string().is_empty());
            return;
        }
    };
    assert!(is_known);
    let mut again = Vec::with_capacity(body.len());
    let written = encode_transition(&transition, &mut again).expect("what decodes encodes");
    assert_eq!(written, (EntryKind::from_number(kind).expect("known"), version));
    assert_eq!(again, body, "{transition:?}");
    again.push(0);
    assert!(decode_transition(kind, version, &again).is_err(), "a trailing byte of {transition:?}");
    assert!(decode_transition(kind, version, &body[..body.len() - 1]).is_err(), "a missing byte");
}

fn check_round_trip(input: &[u8]) {
    let Ok(transition) = Draw::new(input).transition() else { return };
    let mut body = Vec::new();
    let (kind, version) = encode_transition(&transition, &mut body).expect("can be written");
    assert_eq!(decode_transition(kind as u16, version, &body).as_ref(), Ok(&transition));
    check_canonical(kind as u16, version, &body);
}
