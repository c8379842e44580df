//! Theaters in virtual time, under many seeds. They are one program, because building one takes less time than building ten.

#[path = "../messages/mod.rs"]
#[macro_use]
mod messages;
#[path = "../roamers/mod.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod roamers;

mod census;
mod seeds;

mod answers;
mod apart;
mod conditions;
mod first_contact;
mod groups_held;
mod groups_simulated;
mod large_answers;
mod lost_actors;
mod refused;
mod roaming_simulated;
mod simulated;
mod slow_readers;
mod started;
