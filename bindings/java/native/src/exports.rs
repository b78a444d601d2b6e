//! The functions that `sharestate.Native` declares.
//!
//! Each is called by the JVM with references of the frame that calls; none is kept.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jni::errors::{Error, ThrowRuntimeExAndDefault};
use jni::objects::{JByteArray, JClass, JString};
use jni::sys::jlong;
use jni::{Env, EnvUnowned};
use sharestate::ShareStore;

use crate::answer::{self, Failure, Success};
use crate::call::Call;
use crate::session::Session;
use crate::wire::Writer;
use crate::{handles, logging, options};

/// Does `work` on the bytes of `request` and gives its encoded answer to Java.
fn answered<'local>(
    mut env: EnvUnowned<'local>,
    request: Option<&JByteArray<'local>>,
    work: impl FnOnce(&[u8]) -> Result<Success, Failure>,
) -> JByteArray<'local> {
    env.with_env(|env: &mut Env<'local>| -> Result<_, Error> {
        let bytes = match request {
            Some(request) => env.convert_byte_array(request)?,
            None => Vec::new(),
        };
        let answer = catch_unwind(AssertUnwindSafe(|| work(&bytes)))
            .unwrap_or_else(|_| Err(Failure::internal("a native call panicked")));
        env.byte_array_from_slice(&answer::encode(&answer))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// The release of this library. Its name and form must never change: a jar of any release asks it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_sharestate_Native_version<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
) -> JString<'local> {
    env.with_env(|env| JString::from_str(env, VERSION.trim_start_matches(VERSION_TAG)))
        .resolve::<ThrowRuntimeExAndDefault>()
}

const VERSION_TAG: &str = "sharestate-jni ";
const VERSION: &str = concat!("sharestate-jni ", env!("CARGO_PKG_VERSION"));

/// Opens a store; answers handle and recovery report.
#[unsafe(no_mangle)]
pub extern "system" fn Java_sharestate_Native_open<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    request: JByteArray<'local>,
) -> JByteArray<'local> {
    answered(env, Some(&request), |bytes| {
        logging::install();
        let (directory, options) = options::decode(bytes)?;
        let store = ShareStore::open(directory, &options)?;
        let (uuid, report) = (store.uuid().to_string(), Box::new(store.recovery().clone()));
        let handle = handles::add(Session::new(store));
        Ok(Success::Opened { handle, uuid, report })
    })
}

/// Starts a call; an answer of status 1 says that it was not started.
#[unsafe(no_mangle)]
pub extern "system" fn Java_sharestate_Native_submit<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    id: jlong,
    request: JByteArray<'local>,
) -> JByteArray<'local> {
    answered(env, Some(&request), |bytes| {
        let session = handles::get_open(handle)?;
        session.submit(id, Call::decode(bytes)?);
        Ok(Success::Nothing)
    })
}

/// Waits for answers: for each the call's id, the length of the answer and the answer. Null when
/// the store is closed and all were fetched.
#[unsafe(no_mangle)]
pub extern "system" fn Java_sharestate_Native_await<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    env.with_env(|env: &mut Env<'local>| -> Result<_, Error> {
        let Some(answers) = handles::get(handle).and_then(|session| session.wait()) else {
            handles::remove(handle);
            return Ok(JByteArray::default());
        };
        let mut out = Writer::default();
        for (id, answer) in &answers {
            out.i64(*id).bytes(answer);
        }
        env.byte_array_from_slice(&out.into_bytes())
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// Closes a store; blocks until its last checkpoint is taken.
#[unsafe(no_mangle)]
pub extern "system" fn Java_sharestate_Native_close<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    answered(env, None, |_| handles::get_open(handle)?.close())
}

/// Waits for the next line of the store's log: its level and its text.
#[unsafe(no_mangle)]
pub extern "system" fn Java_sharestate_Native_awaitLog<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
) -> JByteArray<'local> {
    env.with_env(|env: &mut Env<'local>| -> Result<_, Error> {
        let (level, text) = logging::wait();
        let mut out = Writer::default();
        out.i8(level).text(&text);
        env.byte_array_from_slice(&out.into_bytes())
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}
