//! What the toolbox promises. One program, because building one takes less time than building nine.

#[path = "../support/mod.rs"]
mod support;

mod coordinated_shutdown;
mod durable;
mod gather;
mod receptionist;
mod resource;
mod router;
mod toolbox_abroad;
mod topic;
mod topics_abroad;
