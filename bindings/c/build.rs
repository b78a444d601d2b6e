//! Gives the shared library the name by which programs find it at run time. The number is the ABI's
//! major version.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsharestate.so.1");
    }
}
