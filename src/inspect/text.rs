//! Words and text forms that several tools share.

use std::fmt;

use crate::model::{AckType, DeliveryState, Outcome};

/// Prints text on one line: control characters are escaped. Group ids may hold any of them.
#[derive(Debug, Clone, Copy)]
pub struct OneLine<T>(pub T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        let text = self.0.to_string();
        for letter in text.chars() {
            if letter.is_control() {
                write!(f, "{}", letter.escape_default())?;
            } else {
                f.write_char(letter)?;
            }
        }
        Ok(())
    }
}

/// The name of a delivery state.
#[must_use]
pub fn state_name(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::AVAILABLE => "available",
        DeliveryState::ACQUIRED => "acquired",
        DeliveryState::ACKNOWLEDGED => "acknowledged",
        DeliveryState::ARCHIVING => "archiving",
        DeliveryState::ARCHIVED => "archived",
        DeliveryState::TX_PENDING => "tx-pending",
        _ => "unknown",
    }
}

/// The name of an outcome.
#[must_use]
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Commit => "commit",
        Outcome::Abort => "abort",
    }
}

/// The name of an ack type.
#[must_use]
pub fn ack_name(ack_type: AckType) -> &'static str {
    match ack_type {
        AckType::Gap => "gap",
        AckType::Accept => "accept",
        AckType::Release => "release",
        AckType::Reject => "reject",
        AckType::Renew => "renew",
    }
}
