//! Members in real theaters: threads, sockets, processes and ledgers that hang.

mod ledgers;
mod processes;
mod speed;
mod takeover;
mod together;
mod virtual_actors;
