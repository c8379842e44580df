//! Tests of the theater among others.

mod impostors;
