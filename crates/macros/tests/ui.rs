//! What users see when they make a mistake, word for word.
//!
//! After a change, `TRYBUILD=overwrite cargo test -p playhouse-macros --test ui` writes the
//! `.stderr` files anew: read the difference as a user would.

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
