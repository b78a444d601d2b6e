//! The key of a share partition and its text form.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::limits::ID_BYTES_MAX;

/// A share partition: `(group id, topic id, partition index)`, valid by construction (semantics
/// section 1).
///
/// The text form is `group:topic-uuid:partition`, parsed from the right because a group id may
/// contain colons (KAFKA-20183).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharePartitionKey {
    group_id: Arc<str>,
    topic_id: Uuid,
    partition: i32,
}

/// Why a key is malformed. Every case is Kafka's `INVALID_REQUEST` (42).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The group id is empty.
    #[error("the group id is empty")]
    EmptyGroup,
    /// The group id is longer than 32,767 bytes.
    #[error("the group id has {bytes} bytes, {ID_BYTES_MAX} are allowed")]
    GroupTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The topic id is the nil UUID.
    #[error("the topic id is the nil UUID")]
    NilTopic,
    /// The partition index is negative.
    #[error("the partition index {0} is negative")]
    NegativePartition(i32),
    /// The text is not `group:topic-uuid:partition`.
    #[error("`{0}` is not of the form group:topic-uuid:partition")]
    Text(String),
}

impl SharePartitionKey {
    /// Checks and makes a key.
    ///
    /// # Errors
    /// [`KeyError`] when a part is malformed.
    pub fn new(
        group_id: impl Into<Arc<str>>,
        topic_id: Uuid,
        partition: i32,
    ) -> Result<Self, KeyError> {
        let group_id = group_id.into();
        if group_id.is_empty() {
            return Err(KeyError::EmptyGroup);
        }
        if group_id.len() > ID_BYTES_MAX {
            return Err(KeyError::GroupTooLong { bytes: group_id.len() });
        }
        if topic_id.is_nil() {
            return Err(KeyError::NilTopic);
        }
        if partition < 0 {
            return Err(KeyError::NegativePartition(partition));
        }
        Ok(Self { group_id, topic_id, partition })
    }

    /// The share group.
    #[must_use]
    pub fn group_id(&self) -> &str {
        &self.group_id
    }

    /// The topic.
    #[must_use]
    pub fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    /// The partition index, never negative.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }
}

impl fmt::Display for SharePartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.group_id, self.topic_id, self.partition)
    }
}

impl fmt::Debug for SharePartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SharePartitionKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let malformed = || KeyError::Text(text.to_owned());
        let (rest, partition) = text.rsplit_once(':').ok_or_else(malformed)?;
        let (group, topic) = rest.rsplit_once(':').ok_or_else(malformed)?;
        let topic_id = Uuid::parse_str(topic).map_err(|_| malformed())?;
        let partition = partition.parse().map_err(|_| malformed())?;
        Self::new(group, topic_id, partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: Uuid = Uuid::from_u128(7);

    #[test]
    fn text_form_round_trips_with_colons_in_the_group() {
        let key = SharePartitionKey::new("a:b::c", TOPIC, 12).expect("valid");
        assert_eq!(key.to_string().parse(), Ok(key));
    }

    #[test]
    fn each_malformed_part_is_named() {
        let new = |group: &str, topic, partition| SharePartitionKey::new(group, topic, partition);
        assert_eq!(new("", TOPIC, 0), Err(KeyError::EmptyGroup));
        assert_eq!(new("g", Uuid::nil(), 0), Err(KeyError::NilTopic));
        assert_eq!(new("g", TOPIC, -1), Err(KeyError::NegativePartition(-1)));
        assert!(new(&"g".repeat(32_767), TOPIC, 0).is_ok());
        assert_eq!(
            new(&"g".repeat(32_768), TOPIC, 0),
            Err(KeyError::GroupTooLong { bytes: 32_768 })
        );
        for text in ["", "g", "g:0", "g:nouuid:0", "g:00000000-0000-0000-0000-000000000007:x"] {
            assert_eq!(text.parse::<SharePartitionKey>(), Err(KeyError::Text(text.to_owned())));
        }
    }
}
