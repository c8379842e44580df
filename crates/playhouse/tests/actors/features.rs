//! The dependencies that a program does not have if it leaves features out.

use std::collections::HashSet;

// GUARANTEE: Programs of one process
/// The program in `bench/peers/self_peer` does without theaters. Its lock file names all its dependencies, because
/// `.ci/run` builds it `--locked`.
#[test]
fn without_theaters_nothing_of_them_is_in_a_program() {
    let lock = include_str!("../../../../bench/peers/self_peer/Cargo.lock");
    let names: HashSet<&str> = lock.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    assert!(names.contains(r#""playhouse-actor""#) && names.contains(r#""serde""#));
    for theirs in [r#""playhouse-theater""#, r#""rustls""#, r#""ring""#, r#""mio""#, r#""cc""#] {
        assert!(!names.contains(theirs), "{theirs} is in the lock file of bench/peers/alone");
    }
}
