//! Explorations of the protocol: named scenes, random walks, and all interleavings of small programs.

mod balance;
mod cuts;
mod interleavings;
mod lives;
mod scenes;
mod walks;
mod world;
