//! Which stages send more than they handle.
//!
//! A standing backlog is not overload: where a fixed number of messages goes round, every stage handles as much as it sends, however
//! much waits, and to mute a stage there only takes a core away. A flood has a source that sends more than it handles. So while a
//! worker is *pressed* (more waits there than it handles in a few milliseconds), the senders' workers keep an account for each stage:
//! bytes sent to pressed workers, less bytes handled. A stage whose debt passes a bound is muted.
//!
//! Accounts are kept while some worker is pressed and for a while after that, because handling a message that is counted costs a few
//! nanoseconds. A gulp counts both sides or neither.

/// A stage with a larger debt, in bytes of records, is muted: some 500 messages.
const DEBT_BYTES_MAX: i64 = 16 * 1024;
/// What a stage has handled counts up to this, in bytes of records: a round of 30,000 messages may follow 30,000 answers.
const CREDIT_BYTES_MAX: i64 = 1024 * 1024;
/// Checkups without a charge after which accounts are closed.
const CHECKUPS_MAX: u32 = 50;

/// The accounts of the stages of one worker.
#[derive(Default)]
pub(crate) struct Accounts {
    /// By stages; empty while none are kept.
    debts: Vec<i64>,
    /// Some stage has sent to a pressed worker while no accounts were kept.
    wanted: bool,
    checkups: u32,
}

impl Accounts {
    /// Whether handled messages are counted.
    pub(crate) fn are_kept(&self) -> bool {
        !self.debts.is_empty()
    }

    /// Whether accounts are to be opened at the next boundary.
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// Opens accounts for so many stages. At a boundary.
    pub(crate) fn open(&mut self, stages: usize) {
        self.wanted = false;
        self.checkups = 0;
        self.debts.resize(stages, 0);
    }

    /// The stage has sent so many bytes to a pressed worker. True: it owes too much, and its account begins anew.
    pub(crate) fn charge(&mut self, stage: u16, bytes: usize) -> bool {
        let Some(debt) = self.debts.get_mut(usize::from(stage)) else {
            self.wanted = true;
            return false;
        };
        self.checkups = 0;
        *debt += bytes as i64;
        let owes_too_much = *debt > DEBT_BYTES_MAX;
        if owes_too_much {
            *debt = 0;
        }
        owes_too_much
    }

    /// The stage handles a message of so many bytes.
    pub(crate) fn pay(&mut self, stage: u16, bytes: usize) {
        if let Some(debt) = self.debts.get_mut(usize::from(stage)) {
            *debt = (*debt - bytes as i64).max(-CREDIT_BYTES_MAX);
        }
    }

    /// Closes the accounts where nothing was charged for long. At a checkup.
    pub(crate) fn close_unused(&mut self) {
        if self.are_kept() {
            self.checkups += 1;
            if self.checkups > CHECKUPS_MAX {
                self.debts.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 32;

    fn opened() -> Accounts {
        let mut accounts = Accounts::default();
        assert!(!accounts.charge(1, BYTES) && accounts.are_wanted());
        accounts.open(4);
        assert!(accounts.are_kept() && !accounts.are_wanted());
        accounts
    }

    #[test]
    fn a_stage_that_passes_on_what_it_handles_owes_nothing() {
        let mut accounts = opened();
        for _ in 0..1_000_000 {
            accounts.pay(1, BYTES);
            assert!(!accounts.charge(1, BYTES));
        }
    }

    #[test]
    fn a_round_of_requests_after_as_many_answers_is_no_debt() {
        let mut accounts = opened();
        for _ in 0..10 {
            (0..10_000).for_each(|_| accounts.pay(1, BYTES));
            assert!(!(0..10_000).any(|_| accounts.charge(1, BYTES)));
        }
    }

    #[test]
    fn a_source_owes_too_much_soon_and_again_and_again() {
        let mut accounts = opened();
        let muted = (0..10_000).filter(|_| accounts.charge(2, BYTES)).count();
        assert!((15..25).contains(&muted), "{muted}");
        assert!(!accounts.charge(1, BYTES), "others owe nothing");
    }

    #[test]
    fn accounts_that_nobody_needs_are_closed() {
        let mut accounts = opened();
        (0..CHECKUPS_MAX).for_each(|_| accounts.close_unused());
        assert!(!accounts.charge(1, BYTES) && accounts.are_kept());
        (0..=CHECKUPS_MAX).for_each(|_| accounts.close_unused());
        assert!(!accounts.are_kept());
    }
}
