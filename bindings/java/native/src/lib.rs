#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
//! The native half of sharestate's Java binding (`bindings/java/store`, class `sharestate.Native`).
//!
//! Owns the crossing between the JVM and the store, and nothing else: what calls mean is
//! [`sharestate::ShareStore`]'s affair, and what Java programs see is `sharestate.ShareStore`'s.
//!
//! Rules that keep the JVM alive:
//!
//! * Requests and answers are byte arrays ([`wire`]); no pointer and no reference to a Java object
//!   outlives a native call, and native code never calls into Java.
//! * A handle is a number that is never used twice ([`handles`]); a wrong or closed one is an error.
//! * A panic ends in an answer of class `INTERNAL`, or in a `RuntimeException`; it never crosses.
//! * No Java thread waits for the store, except in `open`, `close`, `await` and `awaitLog`; for
//!   `await` and `awaitLog` Java keeps daemon threads, so that they do not keep a JVM from ending.

mod answer;
mod call;
mod exports;
pub mod handles;
mod logging;
mod options;
mod session;
pub mod wire;
