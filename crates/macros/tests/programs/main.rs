//! Programs that compile, and work. Mistakes are in `../ui`.

mod counter;
mod explicit;
mod guards;
mod names;
mod remote;
mod visibility;
