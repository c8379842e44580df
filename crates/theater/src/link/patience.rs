//! When what was received is acknowledged although who it is for is overloaded.

/// How long overload keeps what was received from being acknowledged in a theater that sleeps.
pub(super) struct OverloadTimeout {
    /// Something is not acknowledged since somebody is overloaded.
    pub(super) tried: bool,
    /// Turns in which nothing moved here.
    pub(super) still_rounds: u32,
    pub(super) still_rounds_max: u32,
    /// How often room had been made when that was seen last.
    pub(super) room_made: u64,
}

impl OverloadTimeout {
    /// A turn takes about a millisecond.
    pub(super) const ROUNDS_MIN: u32 = 8;

    pub(super) fn new() -> OverloadTimeout {
        OverloadTimeout { tried: false, still_rounds: 0, still_rounds_max: OverloadTimeout::ROUNDS_MIN, room_made: 0 }
    }

    /// Whether something has waited.
    pub(super) fn is_tried(&self) -> bool {
        self.tried
    }

    /// Whether what was received is to be acknowledged: after one more turn, in which somebody was overloaded
    /// (`strained`), and in which nothing moved here (`still`): everybody slept, or only those who were overloaded did.
    /// `room_made` is how often room was made on links, if that may be what they wait for.
    pub(super) fn is_over(&mut self, strained: bool, still: bool, room_made: Option<u64>) -> bool {
        self.tried = strained;
        if !strained {
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
