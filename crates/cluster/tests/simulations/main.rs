//! Members in simulated theaters: joins, ends, cuts, and faults by chance.

mod cuts;
mod faults;
mod lives;
mod world;
