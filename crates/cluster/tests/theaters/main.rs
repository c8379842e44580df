//! Members in real theaters: threads, sockets, processes and ledgers that hang.

mod crashes;
mod ledgers;
mod load;
mod processes;
mod takeover;
mod together;
