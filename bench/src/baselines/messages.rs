//! Baselines of the workloads with few actors and many messages: count, pingpong, send-static, repeat.

use super::flat::Flat;
use crate::harness::outcome::{Failure, Outcome, check};
use crate::plans::{count, pingpong, repeat, send};

/// The baseline of `count`, in the same slices.
pub(crate) fn count(plan: &count::Plan) -> Result<Outcome, Failure> {
    struct State {
        left: u64,
        count: u64,
        answer: u64,
    }

    fn produce(flat: &mut Flat<State>, me: u32, _: u64) {
        let slice = flat.state.left.min(count::Plan::SLICE);
        for _ in 0..slice {
            flat.send(increment, me + 1, 1);
        }
        flat.state.left -= slice;
        if flat.state.left > 0 {
            flat.send(produce, me, 0);
        } else {
            flat.send(get, me + 1, 0);
        }
    }

    fn increment(flat: &mut Flat<State>, _: u32, by: u64) {
        flat.state.count += by;
    }

    fn get(flat: &mut Flat<State>, me: u32, _: u64) {
        flat.send(got, me - 1, flat.state.count);
    }

    fn got(flat: &mut Flat<State>, _: u32, count: u64) {
        flat.state.answer = count;
    }

    let mut flat = Flat::new(State { left: plan.increments, count: 0, answer: 0 });
    let elapsed = flat.time(|flat| flat.send(produce, 0, 0));
    check("the count", plan.increments, flat.state.answer)?;
    Ok(Outcome::new(plan.increments, elapsed))
}

/// The baseline of `pingpong`.
pub(crate) fn pingpong(plan: &pingpong::Plan) -> Result<Outcome, Failure> {
    struct State {
        left: u64,
        seen: u64,
    }

    fn ping(flat: &mut Flat<State>, me: u32, _: u64) {
        flat.state.seen += 1;
        flat.send(pong, me - 1, 0);
    }

    fn pong(flat: &mut Flat<State>, me: u32, _: u64) {
        flat.state.left -= 1;
        if flat.state.left > 0 {
            flat.send(ping, me + 1, 0);
        }
    }

    let mut flat = Flat::new(State { left: plan.round_trips, seen: 0 });
    let elapsed = flat.time(|flat| flat.send(ping, 1, 0));
    check("the pings seen", plan.round_trips, flat.state.seen)?;
    Ok(Outcome::new(2 * plan.round_trips, elapsed))
}

/// The baseline of `send-static`.
pub(crate) fn send_static(plan: &send::Plan) -> Result<Outcome, Failure> {
    struct State {
        left: u64,
        received: u64,
    }

    fn again(flat: &mut Flat<State>, me: u32, _: u64) {
        flat.state.received += 1;
        flat.state.left -= 1;
        if flat.state.left > 0 {
            flat.send(again, me, 0);
        }
    }

    let mut flat = Flat::new(State { left: plan.sends, received: 0 });
    let elapsed = flat.time(|flat| flat.send(again, 0, 0));
    check("the messages received", plan.sends, flat.state.received)?;
    Ok(Outcome::new(plan.sends, elapsed))
}

/// The baseline of `repeat`, in the same slices.
pub(crate) fn repeat(plan: &repeat::Plan) -> Result<Outcome, Failure> {
    struct State {
        /// The number of requests to each server.
        servers: Vec<u64>,
        sent: u64,
        replies: u64,
        rounds: u64,
        rounds_max: u64,
        requests_sum: u64,
    }

    fn scatter(flat: &mut Flat<State>, me: u32, _: u64) {
        let until = (flat.state.sent + repeat::Plan::SLICE).min(flat.state.servers.len() as u64);
        for server in flat.state.sent..until {
            flat.send(request, server as u32, 0);
        }
        flat.state.sent = until;
        if until < flat.state.servers.len() as u64 {
            flat.send(scatter, me, 0);
        }
    }

    fn request(flat: &mut Flat<State>, me: u32, _: u64) {
        let requests = &mut flat.state.servers[me as usize];
        *requests += 1;
        let requests = *requests;
        flat.send(reply, 0, requests);
    }

    fn reply(flat: &mut Flat<State>, me: u32, requests: u64) {
        let state = &mut flat.state;
        state.requests_sum += requests;
        state.replies += 1;
        if state.replies < state.servers.len() as u64 {
            return;
        }
        (state.sent, state.replies) = (0, 0);
        state.rounds += 1;
        if state.rounds < state.rounds_max {
            flat.send(scatter, me, 0);
        }
    }

    let servers = vec![0; plan.servers as usize];
    let rounds_max = plan.rounds;
    let mut flat = Flat::new(State { servers, sent: 0, replies: 0, rounds: 0, rounds_max, requests_sum: 0 });
    let elapsed = flat.time(|flat| flat.send(scatter, 0, 0));
    check("the sum of the requests that the servers counted", plan.requests_sum(), flat.state.requests_sum)?;
    Ok(Outcome::new(2 * plan.servers * plan.rounds, elapsed))
}
