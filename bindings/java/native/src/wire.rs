//! Bytes between Java and Rust: big-endian numbers as `java.nio.ByteBuffer` writes them, texts as a
//! length and UTF-8. Owns reading that never goes astray; knows no requests.

use sharestate::SharePartitionKey;
use uuid::Uuid;

use crate::answer::Failure;

/// Reads a request from front to back.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (head, rest) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| malformed("it ends early"))?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Failure`] when nothing is left, as with all that follow.
    pub fn u8(&mut self) -> Result<u8, Failure> {
        Ok(u8::from_be_bytes(self.take()?))
    }

    /// A Java `byte`.
    pub fn i8(&mut self) -> Result<i8, Failure> {
        Ok(i8::from_be_bytes(self.take()?))
    }

    /// A Java `short`.
    pub fn i16(&mut self) -> Result<i16, Failure> {
        Ok(i16::from_be_bytes(self.take()?))
    }

    /// A Java `int`.
    pub fn i32(&mut self) -> Result<i32, Failure> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    /// A Java `long`.
    pub fn i64(&mut self) -> Result<i64, Failure> {
        Ok(i64::from_be_bytes(self.take()?))
    }

    /// A number of bytes or of things, each of which takes at least `size` bytes of what is left.
    pub fn count(&mut self, size: usize) -> Result<usize, Failure> {
        let count = usize::try_from(self.i32()?).map_err(|_| malformed("a count is negative"))?;
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(malformed("a count is larger than what follows")),
        }
    }

    /// A text.
    pub fn text(&mut self) -> Result<&'a str, Failure> {
        let bytes = self.count(1)?;
        let (head, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        std::str::from_utf8(head).map_err(|_| malformed("a text is not UTF-8"))
    }

    /// A topic id.
    pub fn uuid(&mut self) -> Result<Uuid, Failure> {
        Ok(Uuid::from_bytes(self.take()?))
    }

    /// Group, topic and partition.
    pub fn key(&mut self) -> Result<SharePartitionKey, Failure> {
        let group = self.text()?;
        let (topic, partition) = (self.uuid()?, self.i32()?);
        Ok(SharePartitionKey::new(group, topic, partition).map_err(sharestate::StoreError::from)?)
    }

    /// Nothing may be left.
    pub fn end(&self) -> Result<(), Failure> {
        if self.rest.is_empty() { Ok(()) } else { Err(malformed("it goes on behind its end")) }
    }
}

/// Java and Rust disagree on the form of a request: a defect of this binding.
pub(crate) fn malformed(what: &str) -> Failure {
    Failure::internal(format!("malformed request: {what}"))
}

/// Writes an answer.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A Java `byte`.
    pub fn i8(&mut self, value: i8) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// A Java `boolean`.
    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.i8(i8::from(value))
    }

    /// A Java `short`.
    pub fn i16(&mut self, value: i16) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// A Java `int`.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// A Java `long`.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.put(&value.to_be_bytes())
    }

    /// An unsigned number as a Java `long`; beyond it, the largest one.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.i64(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// A number of things, always below 2^31: nothing larger fits a store's row.
    pub fn count(&mut self, count: usize) -> &mut Self {
        self.i32(i32::try_from(count).unwrap_or(i32::MAX))
    }

    /// A length and bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len()).put(bytes)
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Group, topic and partition.
    pub fn key(&mut self, key: &SharePartitionKey) -> &mut Self {
        self.text(key.group_id()).put(key.topic_id().as_bytes()).i32(key.partition())
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
