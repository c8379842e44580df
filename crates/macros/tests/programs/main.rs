//! Programs that compile, and do what they say. Mistakes are in `../ui`.

mod counter;
mod explicit;
mod guards;
mod names;
mod remote;
mod visibility;
