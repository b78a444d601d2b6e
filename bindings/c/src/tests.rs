//! What only Rust can show: that a panic inside stays inside. The rest is shown from C
//! (`bindings/c/tests`).

use std::ffi::{CStr, c_void};
use std::sync::mpsc::{Sender, channel};

use crate::calls::testing::{sharestate_panic, sharestate_panic_async};
use crate::error::*;
use crate::operation::Operation;
use crate::running::Recipient;
use crate::store::{sharestate_close, sharestate_open};
use crate::types::*;

fn open(dir: &std::path::Path) -> Store {
    let path = dir.to_str().expect("UTF-8");
    let path = Text { data: path.as_ptr().cast(), length: path.len() };
    let (mut store, mut error) = (0, 0);
    // SAFETY: all pointers are to locals.
    let status = unsafe { sharestate_open(path, std::ptr::null(), &mut store, &mut error) };
    assert_eq!((status, error), (SHARESTATE_OK, 0));
    store
}

fn message(error: Error) -> String {
    // SAFETY: the message lives until the error is freed, below.
    let text = unsafe { CStr::from_ptr(sharestate_error_message(error)) };
    let text = text.to_str().expect("UTF-8").to_owned();
    assert_eq!(sharestate_error_status(error), SHARESTATE_INTERNAL);
    assert_eq!(sharestate_error_kafka_code(error), -1);
    assert_eq!(sharestate_error_free(error), SHARESTATE_OK);
    text
}

unsafe extern "C" fn told(user_data: *mut c_void, status: Status, answer: Answer, error: Error) {
    // SAFETY: the sender outlives the call, which the test waits for.
    let sender = unsafe { &*user_data.cast::<Sender<(Status, Answer, Error)>>() };
    sender.send((status, answer, error)).expect("the test waits");
}

#[test]
fn no_panic_crosses_the_boundary() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let before = crate::answer::outstanding();

    let (sender, told_of) = channel::<(Status, Answer, Error)>();
    let user_data = (&raw const sender).cast_mut().cast();
    let (mut answer, mut error, mut call) = (7, 0, 0);
    let mut caught = 0;
    for later in [false, true, false, true] {
        // SAFETY: all pointers are to locals.
        let status = unsafe { sharestate_panic(store, later, &mut answer, &mut error) };
        assert_eq!((status, answer), (SHARESTATE_INTERNAL, 0));
        assert!(message(error).contains("asked for"));
        // SAFETY: nobody wants the error.
        let status = unsafe { sharestate_panic(store, later, &mut answer, std::ptr::null_mut()) };
        assert_eq!(status, SHARESTATE_INTERNAL);

        let recipient = (Some(told as _), user_data);
        // SAFETY: all pointers are to locals, which live until the callback has run.
        let status =
            unsafe { sharestate_panic_async(store, later, recipient, &mut call, &mut error) };
        assert_eq!((status, error), (SHARESTATE_OK, 0));
        let (status, answer, error) = told_of.recv().expect("told");
        assert_eq!((status, answer), (SHARESTATE_INTERNAL, 0));
        assert!(message(error).contains("asked for"));
        caught += 3;
    }
    println!("panics-caught={caught} crossed=0");

    // The store is none the worse for it.
    // SAFETY: the pointer is to a local.
    assert_eq!(unsafe { sharestate_close(store, &mut error) }, SHARESTATE_OK);
    assert_eq!(crate::answer::outstanding(), before);
}

/// Another thread may have looked the handle up just before the store was closed.
#[test]
fn a_call_that_comes_after_close_does_not_begin() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path());
    let found = crate::store::get(store).expect("open");
    // SAFETY: nobody wants the error.
    assert_eq!(unsafe { sharestate_close(store, std::ptr::null_mut()) }, SHARESTATE_OK);
    let (sender, told_of) = channel::<(Status, Answer, Error)>();
    let user_data = (&raw const sender).cast_mut().cast();
    let recipient = Recipient::new(Some(told), user_data).expect("a callback");
    let refused = found.begin(Operation::PendingTotals, recipient).expect_err("closed");
    assert_eq!(refused.status, SHARESTATE_INVALID_HANDLE);
    drop(found);
    assert!(told_of.try_recv().is_err(), "a callback of a call that has not begun");
}

/// Every exported function has its body inside `guard` or `total`, by itself or through a helper
/// that has, or is one line that cannot fail.
#[test]
fn every_exported_function_is_guarded() {
    let guards = ["guard(", "total(", "wait(", "begin(", "look("];
    let cannot_fail = ["sharestate_abi_version", "sharestate_abi_compatible", "sharestate_version"];
    let mut exported = 0;
    for name in ["answer", "calls/plain", "calls/transaction", "error", "lib", "running", "store"] {
        let path = format!("{}/src/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("source");
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let body = function.split("\n}").next().expect("a body");
            let is_guarded = guards.iter().any(|guard| body.contains(guard));
            let is_simple = cannot_fail.iter().any(|name| body.contains(name));
            assert!(is_guarded || is_simple, "not guarded: {body}");
            exported += 1;
        }
    }
    println!("exported-functions={exported} guarded");
    assert!(exported == 50, "{exported}");
}
