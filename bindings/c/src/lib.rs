//! The C ABI of `sharestate`. `include/sharestate.h` is made from this file and its modules, and
//! `README.md` says how to build, link and use it.
//!
//! Owns everything `unsafe` of this project: what a caller passes is checked (null, wrong and stale
//! handles, lengths, text) before it becomes a value of the store's, and no panic leaves. Knows
//! nothing of what is below [`sharestate::ShareStore`].
//!
//! Handles are numbers that are never given out twice, looked up in a table: a stale, wrong or made
//! up one is an error, never a pointer that is followed.

#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod answer;
mod calls;
mod convert;
mod error;
mod guard;
mod handle;
mod operation;
mod running;
mod store;
#[cfg(test)]
mod tests;
mod types;

/// Version of this ABI: major version in the upper 16 bits, minor in the lower. A higher minor
/// version only adds; a higher major version may change anything.
pub const SHARESTATE_ABI_VERSION: u32 = 0x0001_0000;

/// The version of the ABI that the library has, which may differ from that of the header a program
/// was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_abi_version() -> u32 {
    SHARESTATE_ABI_VERSION
}

/// Whether a program that was compiled with a header of version `header_version` can use this
/// library: pass `SHARESTATE_ABI_VERSION`. Answers 1 if the major versions are equal and the
/// library is not older, else 0. Call it before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_abi_compatible(header_version: u32) -> i32 {
    let major = |version: u32| version >> 16;
    let fits = major(header_version) == major(SHARESTATE_ABI_VERSION)
        && header_version <= SHARESTATE_ABI_VERSION;
    i32::from(fits)
}

/// The release of the library as text, for logs. Never null; valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_version() -> *const std::ffi::c_char {
    const VERSION: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
    ) {
        Ok(version) => version,
        Err(_) => c"unknown",
    };
    VERSION.as_ptr()
}
