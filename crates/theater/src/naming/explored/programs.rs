//! The explored programs, and the properties of all of their states.

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::*;
use crate::naming::migration_protocol::{Event, Residence, TheaterId};

impl World {
    /// Returns whether all messages were handled and nothing waits.
    fn has_ended(&self, program: &Roaming) -> bool {
        let is_at_rest = |cell: &Cell| {
            cell.mail.is_empty()
                && cell.arrival_buffer.is_empty()
                && matches!(cell.mode, Mode::Vacant | Mode::Live | Mode::Stub | Mode::Reports)
        };
        let is_done = |actor: usize| {
            // A lost actor sends no more, and the last messages may be missing.
            let sent = self.sent[other(actor)];
            let is_known = |number: u8| (self.missing[actor] | self.reported[actor]) >> number & 1 == 1;
            let has_sent = sent == program.sends[other(actor)] || self.lives(other(actor)) == 0;
            has_sent && (self.handled[actor]..sent).all(is_known)
        };
        let is_together = |theater: &Theater| theater.cells.iter().all(Cell::has_actor);
        let has_no_actor = |theater: &Theater| !theater.cells.iter().any(Cell::has_actor);
        let is_whole =
            !program.together || self.theaters.iter().all(|theater| is_together(theater) || has_no_actor(theater));
        // The members of a group are lost as one.
        let may_die = |actor: usize| self.may_die[actor] || program.together && self.may_die.contains(&true);
        (0..ACTORS).all(is_done)
            && is_whole
            && (0..ACTORS).all(|actor| {
                if self.lives(actor) == 0 { may_die(actor) } else { program.cuts || self.reported[actor] == 0 }
            })
            && self.theaters.iter().all(|theater| theater.owed.is_empty() && theater.cells.iter().all(is_at_rest))
    }

    fn is_bounded(&self) -> bool {
        self.links.iter().flatten().all(|link| link.len() <= MANY)
            && self.theaters.iter().all(|theater| theater.owed.len() <= MANY)
            && self.theaters.iter().flat_map(|theater| theater.numbers).all(|number| number <= MANY as u64)
    }

    fn lives(&self, actor: usize) -> usize {
        self.theaters.iter().filter(|theater| theater.cells[actor].has_actor()).count()
    }
}

impl Model for Roaming {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.flaw.is_some() || !world.is_bounded() {
            return;
        }
        let is_dead = |at: usize| world.dead == Some(at);
        if self.cuts && world.cut.is_none() {
            steps.extend([[0, 1], [0, 2], [1, 2]].map(|between| Step::Cut { between }));
        }
        if let Some(ends) = world.cut
            && self.heals
            && !world.is_healed
            && ends.into_iter().all(|end| world.theaters[end].has_lost)
        {
            steps.push(Step::Heal);
        }
        if self.deaths && world.dead.is_none() {
            steps.extend((0..THEATERS).map(|at| Step::Die { at }));
        }
        for (at, theater) in world.theaters.iter().enumerate().filter(|(at, _)| !is_dead(*at)) {
            if world.gone(at).is_some() && !theater.has_lost {
                steps.push(Step::Lose { at });
            }
            for (actor, cell) in theater.cells.iter().enumerate() {
                let is_live = cell.mode == Mode::Live;
                let residence = theater.views[actor].residence();
                let others = (0..THEATERS).filter(|to| *to != at && !world.has_lost(at, *to));
                if is_live && world.sent[actor] < self.sends[actor] && theater.cells[other(actor)].mode != Mode::Vacant
                {
                    steps.push(Step::Send { at, from: actor });
                }
                // A stub forwards nothing over a link that is lost. It is about to learn of the loss.
                let sends_on = cell.mode == Mode::Stub && !cell.is_closed && !world.leads_nowhere(at, actor);
                if !cell.mail.is_empty() && (is_live || sends_on) {
                    steps.push(Step::Mail { at, actor });
                }
                if !cell.requests.is_empty() {
                    steps.push(Step::Request { at, actor });
                } else if is_live
                    && residence == Residence::Here
                    && world.migrations > 0
                    && (actor == 0 || !self.together)
                {
                    let is_ready = |actor: usize| {
                        let (cell, view) = (&theater.cells[actor], &theater.views[actor]);
                        cell.mode == Mode::Live && cell.requests.is_empty() && view.residence() == Residence::Here
                    };
                    if !self.together || (0..ACTORS).all(is_ready) {
                        steps.extend(others.clone().map(|to| Step::Migrate { from: at, actor, to }));
                    }
                }
                if world.give_ups > 0 && matches!(residence, Residence::Leaving { .. }) {
                    steps.push(Step::GiveUp { at, actor });
                }
                if world.names > 0 && cell.mode != Mode::Vacant {
                    let new = others.filter(|to| !is_dead(*to) && world.makes_stub(*to, actor));
                    steps.extend(new.map(|to| Step::Name { from: at, actor, to }));
                }
            }
        }
        for (from, links) in world.links.iter().enumerate() {
            steps.extend((0..THEATERS).filter(|to| !links[*to].is_empty()).map(|to| Step::Frame { from, to }));
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = world.clone();
        match step {
            Step::Die { at } => world.die(at),
            Step::Cut { between } => world.cut = Some(between),
            Step::Heal => {
                world.is_healed = true;
                world.theaters.iter_mut().for_each(|theater| theater.has_lost = false);
            }
            Step::Lose { at } => world.lose(at, self),
            Step::Send { at, from } => {
                let message = Item::Message { number: world.sent[from], owed: None, awaited: 0 };
                world.sent[from] += 1;
                if world.theaters[at].cells[other(from)].reports() {
                    world.report(at, other(from), message);
                } else {
                    world.theaters[at].cells[other(from)].mail.push_back(message);
                }
            }
            Step::Mail { at, actor } => world.take_mail(at, actor),
            Step::Request { at, actor } => world.do_request(at, actor, self),
            Step::Frame { from, to } => {
                let frame = world.links[from][to].pop_front()?;
                world.take(from, to, frame, self);
            }
            Step::Migrate { from, actor, to } => {
                world.migrations -= 1;
                if self.together {
                    world.migrate_together(from, to as TheaterId, self);
                    return Some(world);
                }
                world.migrate(from, actor, to as TheaterId, self);
            }
            Step::GiveUp { at, actor } => {
                world.give_ups -= 1;
                world.theaters[at].drains[actor] = None;
                world.step(at, actor, Event::GiveUp, self);
            }
            Step::Name { from, actor, to } => {
                world.names -= 1;
                let route = world.name_for(from, actor, self);
                world.meet(to, actor, route, self);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::<Self>::always("each message is handled once and in order", |_, world| world.flaw.is_none()),
            Property::<Self>::always("an actor lives in one theater at most", |_, world| {
                (0..ACTORS).all(|actor| world.lives(actor) <= 1)
            }),
            Property::<Self>::always("nothing is reported while its receiver lives", |program, world| {
                program.cuts || (0..ACTORS).all(|actor| world.lives(actor) == 0 || world.reported[actor] == 0)
            }),
            Property::<Self>::always("nothing goes round for ever", |_, world| world.is_bounded()),
            Property::<Self>::always("nothing waits for ever", |program, world| {
                let mut steps = Vec::new();
                program.actions(world, &mut steps);
                !steps.is_empty() || world.flaw.is_some() || !world.is_bounded() || world.has_ended(program)
            }),
        ]
    }
}

const PLAIN: Roaming = Roaming {
    sends: [2, 0],
    migrations: 2,
    names: 0,
    give_ups: 0,
    deaths: false,
    cuts: false,
    heals: false,
    together: false,
    starts: false,
    without: None,
};

/// Explores a program until a property does not hold, or to its end. Returns the properties that do not hold.
fn explore(program: Roaming) -> Vec<&'static str> {
    let checker = program.checker().finish_when(HasDiscoveries::AnyFailures).threads(2).spawn_bfs().join();
    println!("{program:?}: {} states, up to {} steps", checker.unique_state_count(), checker.max_depth());
    checker.discoveries().into_keys().collect()
}

/// Returns whether a state of a program breaks the property. The program is explored no further.
fn breaks(property: &'static str, program: Roaming) -> bool {
    let is_found = HasDiscoveries::AllOf([property].into());
    let checker = program.checker().finish_when(is_found).threads(2).spawn_dfs().join();
    checker.discovery(property).is_some()
}

#[test]
fn an_order_holds_where_senders_and_receivers_move() {
    assert_eq!(explore(PLAIN), [""; 0]);
    assert_eq!(explore(Roaming { sends: [2, 1], ..PLAIN }), [""; 0]);
    assert_eq!(explore(Roaming { migrations: 3, ..PLAIN }), [""; 0]);
}

#[test]
fn a_remotely_started_actor_has_one_incarnation_for_every_first_namer() {
    let starts = Roaming { starts: true, migrations: 1, ..PLAIN };
    assert_eq!(explore(Roaming { sends: [1, 2], names: 1, ..starts }), [""; 0]);
    assert_eq!(explore(Roaming { sends: [0, 1], names: 1, deaths: true, ..starts }), [""; 0]);
}

#[test]
fn names_and_attempts_that_are_given_up_change_nothing() {
    assert_eq!(explore(Roaming { names: 1, ..PLAIN }), [""; 0]);
    assert_eq!(explore(Roaming { give_ups: 1, ..PLAIN }), [""; 0]);
}

#[test]
fn actors_outside_a_lost_theater_go_on_and_lost_actors_are_reported() {
    for sends in [[1, 0], [2, 0]] {
        assert_eq!(explore(Roaming { sends, deaths: true, migrations: 1, ..PLAIN }), [""; 0]);
    }
    assert_eq!(explore(Roaming { sends: [1, 0], deaths: true, ..PLAIN }), [""; 0]);
}

#[test]
fn a_group_moves_as_one_and_is_lost_as_one() {
    let group = Roaming { together: true, ..PLAIN };
    assert_eq!(explore(Roaming { sends: [1, 1], ..group }), [""; 0]);
    assert_eq!(explore(Roaming { sends: [1, 0], migrations: 1, deaths: true, ..group }), [""; 0]);
}

#[test]
fn an_answer_to_locate_before_the_loss_reports_a_living_actor() {
    assert!(breaks(
        "nothing is reported while its receiver lives",
        Roaming { sends: [1, 0], deaths: true, without: Some(Rule::AnswerLate), ..PLAIN }
    ));
}

#[test]
fn a_missing_note_in_the_birth_theater_reports_a_living_actor() {
    assert!(breaks(
        "nothing is reported while its receiver lives",
        Roaming { sends: [1, 0], deaths: true, without: Some(Rule::Note), ..PLAIN }
    ));
}

#[test]
fn without_a_drain_an_actor_overtakes_its_own_message() {
    assert!(breaks("each message is handled once and in order", Roaming { without: Some(Rule::Drain), ..PLAIN }));
}

#[test]
fn with_early_acknowledgements_an_actor_overtakes_its_own_message() {
    assert!(breaks(
        "each message is handled once and in order",
        Roaming { migrations: 3, without: Some(Rule::AcknowledgeLate), ..PLAIN }
    ));
}

#[test]
fn a_partition_for_some_time_doubles_nothing_and_blocks_nothing_forever() {
    let apart = Roaming { cuts: true, migrations: 1, ..PLAIN };
    assert_eq!(explore(apart), [""; 0]);
    for sends in [[2, 0], [1, 1]] {
        assert_eq!(explore(Roaming { sends, heals: true, ..apart }), [""; 0]);
    }
    let given_up = Roaming { sends: [1, 0], heals: true, give_ups: 1, names: 1, ..apart };
    assert_eq!(explore(given_up), [""; 0]);
    assert_eq!(explore(Roaming { sends: [1, 0], heals: true, together: true, ..apart }), [""; 0]);
}
