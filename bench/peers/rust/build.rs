//! Tells the programs the version of their runtime, from `Cargo.lock`.

use std::path::Path;
use std::{env, fs};

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let locks = Path::new(&package).ancestors().map(|folder| folder.join("Cargo.lock"));
    let lock = locks.into_iter().find(|lock| lock.is_file()).expect("Cargo.lock is there");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(lock).expect("Cargo.lock is a text");
    for peer in ["actix", "ractor", "kameo", "playhouse"] {
        let (_, rest) = lock.split_once(&format!("name = \"{peer}\"\nversion = \"")).expect("the lock names the peer");
        let (version, _) = rest.split_once('"').expect("a version ends with a quotation mark");
        println!("cargo::rustc-env={}_VERSION={version}", peer.to_uppercase());
    }
}
