//! Members in simulated theaters: joins, ends, cuts, virtual actors, and faults by chance.

mod cuts;
mod faults;
mod lives;
mod virtual_actors;
mod virtual_world;
mod world;
