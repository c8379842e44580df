//! The checks after a run: each message, state and future has exactly one end.

use super::*;

/// Compares the sent messages with their fates. `counted` is the number of dead letters that the system has counted.
pub(super) fn account(world: &World, counted: u64) -> Option<String> {
    let [before, sent, handled, refused, told] =
        [&world.sent_before, &world.sent, &world.handled, &world.refused, &world.dead]
            .map(|n| n.load(Ordering::SeqCst));
    let ended = handled + refused + counted;
    let at_least = if world.program.racing { before } else { sent };
    // The hook does not get the dead letters of its own sends.
    let hook_sends = !world.program.dead_letter.is_empty();
    let is_told = world.program.racing || told == counted || (hook_sends && told < counted);
    if ended < at_least || ended > sent || !is_told {
        return Some(format!(
            "{sent} tells ({before} before the end): {handled} handled, {refused} refused, {told} told to the hook as dead letters, {counted} counted as such"
        ));
    }
    None
}

/// Polls the shelved asks. Returns the number of asks that have no end.
pub(super) fn poll_shelf(world: &World) -> usize {
    let shelved = std::mem::take(&mut *lock(&world.shelf));
    let mut pending = 0;
    for (mut ask, _token) in shelved {
        pending += usize::from(ask.as_mut().poll(&mut PollContext::from_waker(Waker::noop())).is_pending());
        calmly(|| drop(ask));
    }
    pending
}

/// Drops the kept values after the end of the system.
pub(super) fn finish(world: &Arc<World>, wrong: &mut Vec<String>) {
    let waits = lock(&world.shelf).len();
    let pending = poll_shelf(world);
    if pending > 0 {
        wrong.push(format!("{pending} of {waits} asks have no end, though the system has ended"));
    }
    while {
        let kept = lock(&world.kept).pop();
        kept.is_some()
    } {}
    world.pump();
    *lock(&world.system) = None;
}
