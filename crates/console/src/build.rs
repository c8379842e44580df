//! The compiler, the revision and the profile that the program was built with.

/// The compiler.
pub const RUSTC: &str = env!("PLAYHOUSE_RUSTC");
/// The commit that the program was built from, and whether there were changes; `unknown` outside of a checkout.
pub const REVISION: &str = env!("PLAYHOUSE_REVISION");
/// The target that the program was compiled for.
pub const TARGET: &str = env!("PLAYHOUSE_TARGET");
/// The profile of Cargo, as its folder below `target` is called: `debug`, `release`, `published`.
pub const PROFILE: &str = env!("PLAYHOUSE_PROFILE");
/// The level of optimisation; `0` is none.
pub const OPT_LEVEL: &str = env!("PLAYHOUSE_OPT_LEVEL");
/// Additional flags of the compiler; empty without.
pub const RUSTFLAGS: &str = env!("PLAYHOUSE_RUSTFLAGS");
