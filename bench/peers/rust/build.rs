//! Tells the programs which version of their runtime they were built with: what `Cargo.lock` says.

use std::fs;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock is there");
    for peer in ["actix", "ractor", "kameo"] {
        let (_, rest) = lock.split_once(&format!("name = \"{peer}\"\nversion = \"")).expect("the lock names the peer");
        let (version, _) = rest.split_once('"').expect("a version ends with a quotation mark");
        println!("cargo::rustc-env={}_VERSION={version}", peer.to_uppercase());
    }
}
