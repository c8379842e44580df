//! Members in real theaters: threads, sockets, processes and ledgers that hang.

mod crashes;
mod ledgers;
mod load;
mod processes;
mod speed;
mod takeover;
mod together;
mod virtual_actors;
