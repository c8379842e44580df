//! The timeout after which received packets are acknowledged although their receivers are overloaded.

/// The time for which overload withholds an acknowledgement in a theater that sleeps.
pub(super) struct OverloadTimeout {
    /// Whether something has not been acknowledged because a receiver is overloaded.
    pub(super) tried: bool,
    /// Rounds in which nothing moved in this theater.
    pub(super) still_rounds: u32,
    pub(super) still_rounds_max: u32,
    /// The count of made room at the last look.
    pub(super) room_made: u64,
}

impl OverloadTimeout {
    /// The least number of rounds; a round takes about a millisecond.
    pub(super) const ROUNDS_MIN: u32 = 8;

    pub(super) fn new() -> OverloadTimeout {
        OverloadTimeout { tried: false, still_rounds: 0, still_rounds_max: OverloadTimeout::ROUNDS_MIN, room_made: 0 }
    }

    /// Returns whether an acknowledgement has been withheld.
    pub(super) fn is_tried(&self) -> bool {
        self.tried
    }

    /// Returns whether received packets are to be acknowledged, after one more round in which a receiver was overloaded
    /// (`overloaded`) and nothing moved in this theater (`still`). Nothing moves if all workers sleep, or only overloaded
    /// actors have mail. `room_made` is the number of times that room was made on links, if the receivers may wait for
    /// that.
    pub(super) fn is_over(&mut self, overloaded: bool, still: bool, room_made: Option<u64>) -> bool {
        self.tried = overloaded;
        if !overloaded {
            self.still_rounds = 0;
            self.still_rounds_max = OverloadTimeout::ROUNDS_MIN;
            return true;
        }
        if let Some(room_made) = room_made.filter(|room_made| *room_made != self.room_made) {
            self.room_made = room_made;
            self.still_rounds_max = (self.still_rounds_max / 2).max(OverloadTimeout::ROUNDS_MIN);
        }
        self.still_rounds = if still { self.still_rounds + 1 } else { 0 };
        if self.still_rounds < self.still_rounds_max {
            return false;
        }
        self.still_rounds = 0;
        self.still_rounds_max = self.still_rounds_max.saturating_mul(2);
        self.tried = false;
        true
    }
}
