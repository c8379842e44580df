//! Accounts of stages, to find those that send more messages than they handle.
//!
//! A standing backlog is not overload. In a program with a fixed number of messages, each stage handles as many
//! messages as it sends, and a muted stage only leaves a core unused. A flood has a source that sends more than it
//! handles. A worker is *pressed* if its mail takes longer than 2 ms or exceeds 2 MiB. While a worker is pressed, the
//! workers that send to it keep an account for each of their stages: the messages sent to all receivers, less the
//! messages handled. If the debts of all stages of a worker are too large together, stages that owe at least the
//! average may be muted. Such a stage is muted when it sends to a pressed worker, or to a stage that passes its
//! messages on to an overloaded worker ([`super::relays`]). The bound is for all stages together, because many sources
//! may each owe little.
//!
//! An account counts messages and not bytes, because a stage that answers each short message with a long one is no
//! source. It counts messages to all receivers, because a source may go on by messages to itself.
//!
//! Accounts are kept while a worker that was sent to is pressed and for a while after that, because they cost a few
//! nanoseconds for each message.

/// The number in an account that stands for a worker of another system.
pub(crate) const IN_OTHER_SYSTEM: u16 = u16::MAX;

/// If the stages of a worker owe more messages than this together, those that owe most are muted.
const DEBT_MAX: u64 = 128;
/// The largest debt of a stage, in messages, for which it is not muted. A stage that has collected a few answers may
/// send as many requests.
const DEBT_OF_STAGE_MAX: u64 = 16;
/// The largest number of handled messages that a stage may save as credit. A round of 200,000 requests may follow
/// 200,000 answers.
const CREDIT_MAX: i64 = 1 << 18;
/// Checkups in a row, with no pressed worker that was sent to, after which accounts are closed.
const CHECKUPS_MAX: u32 = 32;

/// The account of a stage.
#[derive(Clone, Copy, Default)]
struct Account {
    /// Messages sent, less messages handled.
    debt: i64,
    /// Messages sent to pressed workers since the stage was muted last, and their bytes.
    pressing: u64,
    pressing_bytes: u64,
}

impl Account {
    /// Returns the messages that the stage has sent to pressed workers and not made up for by handling others.
    fn owed(&self) -> u64 {
        self.pressing.min(self.debt.max(0) as u64)
    }
}

/// Returns the sum over all accounts and the number of accounts that are not 0, after one of them has changed.
fn sum((owed, debtors): (u64, u64), before: u64, after: u64) -> (u64, u64) {
    (owed + after - before, debtors + u64::from(after > 0) - u64::from(before > 0))
}

/// The accounts of the stages of one worker.
#[derive(Default)]
pub(crate) struct Accounts {
    /// The accounts, by stage. Empty while no accounts are kept.
    stages: Vec<Account>,
    /// The messages that all stages owe, and the number of stages that owe any.
    owed: u64,
    debtors: u64,
    /// A stage has sent to a pressed worker while no accounts were kept.
    wanted: bool,
    /// The pressed worker that was sent to last.
    receiver: u16,
    checkups: u32,
}

impl Accounts {
    /// Returns whether accounts are kept.
    pub(crate) fn are_kept(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Returns whether accounts are to be opened before the next gulp.
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// Opens accounts for `stages` stages. The worker calls this between two gulps.
    pub(crate) fn open(&mut self, stages: usize) {
        self.wanted = false;
        self.checkups = 0;
        self.stages.resize(stages, Account::default());
    }

    /// Notes that the stage has sent a message, and the pressed worker that gets it, if any. Returns `Some` if the
    /// stage is to be muted, because its debt is too large: the bytes that it owes. It goes on when these are admitted,
    /// and owes them no longer.
    pub(crate) fn charge(&mut self, stage: u16, bytes: usize, pressed: Option<u16>) -> Option<u32> {
        let presses = pressed.is_some();
        self.receiver = pressed.unwrap_or(self.receiver);
        let Some(account) = self.stages.get_mut(usize::from(stage)) else {
            self.wanted |= presses;
            return None;
        };
        let owed = account.owed();
        account.debt += 1;
        if !presses && account.pressing == 0 {
            return None;
        }
        if presses {
            account.pressing += 1;
            account.pressing_bytes += bytes as u64;
            self.checkups = 0;
        }
        let owes = account.owed();
        (self.owed, self.debtors) = sum((self.owed, self.debtors), owed, owes);
        if !presses || self.owed <= DEBT_MAX || owes <= DEBT_OF_STAGE_MAX || owes * self.debtors < self.owed {
            return None;
        }
        let owed_bytes = u128::from(account.pressing_bytes) * u128::from(owes) / u128::from(account.pressing);
        account.debt -= owes as i64;
        (account.pressing, account.pressing_bytes) = (0, 0);
        (self.owed, self.debtors) = sum((self.owed, self.debtors), owes, 0);
        Some(u32::try_from(owed_bytes).unwrap_or(u32::MAX))
    }

    /// Forgets the account of a stage that another worker runs now.
    pub(crate) fn forget(&mut self, stage: u16) {
        if let Some(account) = self.stages.get_mut(usize::from(stage)) {
            (self.owed, self.debtors) = sum((self.owed, self.debtors), account.owed(), 0);
            *account = Account::default();
        }
    }

    /// Notes that the stage handles a message.
    pub(crate) fn pay(&mut self, stage: u16) {
        if let Some(account) = self.stages.get_mut(usize::from(stage)) {
            let owed = account.owed();
            account.debt = (account.debt - 1).max(-CREDIT_MAX);
            if owed > 0 {
                (self.owed, self.debtors) = sum((self.owed, self.debtors), owed, account.owed());
            }
        }
    }

    /// Closes all accounts if no stage has sent to a pressed worker for 32 checkups, and the last such worker is not
    /// pressed any more. The worker calls this at each checkup.
    pub(crate) fn close_unused(&mut self, is_pressed: impl FnOnce(u16) -> bool) {
        if self.are_kept() {
            self.checkups = if is_pressed(self.receiver) { 0 } else { self.checkups + 1 };
            if self.checkups > CHECKUPS_MAX {
                self.stages.clear();
                (self.owed, self.debtors) = (0, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(accounts: &mut Accounts, stage: u16, presses: bool) -> bool {
        accounts.charge(stage, 40, presses.then_some(7)).is_some()
    }

    fn opened() -> Accounts {
        let mut accounts = Accounts::default();
        assert!(!charge(&mut accounts, 1, false) && !accounts.are_wanted());
        assert!(!charge(&mut accounts, 1, true) && accounts.are_wanted());
        accounts.open(4);
        assert!(accounts.are_kept() && !accounts.are_wanted());
        accounts
    }

    #[test]
    fn a_stage_that_passes_on_what_it_handles_owes_nothing() {
        let mut accounts = opened();
        for _ in 0..1_000_000 {
            accounts.pay(1);
            assert!(!charge(&mut accounts, 1, true));
        }
    }

    #[test]
    fn a_round_of_requests_after_as_many_answers_is_no_debt() {
        let mut accounts = opened();
        for _ in 0..10 {
            (0..10_000).for_each(|_| accounts.pay(1));
            assert!(!(0..10_000).any(|_| charge(&mut accounts, 1, true)));
        }
    }

    #[test]
    fn a_source_owes_too_much_soon_and_again_and_again() {
        let mut accounts = opened();
        let muted = (0..10_000).filter(|_| charge(&mut accounts, 2, true)).count();
        assert_eq!(muted, 77);
        assert!(!charge(&mut accounts, 1, true), "others owe nothing");
    }

    #[test]
    fn a_source_that_sends_messages_to_itself_owes_too_much() {
        let mut accounts = opened();
        let mut step = || {
            accounts.pay(2);
            charge(&mut accounts, 2, false);
            charge(&mut accounts, 2, true)
        };
        assert_eq!((0..10_000).filter(|_| step()).count(), 77);
    }

    #[test]
    fn a_stage_that_sends_little_to_pressed_workers_is_not_muted_for_what_it_sends_to_others() {
        let mut accounts = opened();
        assert!(!(0..10_000).any(|_| charge(&mut accounts, 2, false)));
        assert!(!(0..DEBT_MAX).any(|_| charge(&mut accounts, 2, true)));
        assert!(charge(&mut accounts, 2, true));
    }

    #[test]
    fn many_sources_owe_too_much_together() {
        let mut accounts = Accounts::default();
        charge(&mut accounts, 0, true);
        accounts.open(17);
        let mut sent = 0;
        while !charge(&mut accounts, sent % 16, true) {
            sent += 1;
        }
        assert_eq!(sent, 16 * DEBT_OF_STAGE_MAX as u16);
        // A stage that owes less than the others goes on.
        assert!(!(0..10).any(|_| charge(&mut accounts, 16, true)));
    }

    #[test]
    fn the_debt_of_a_source_is_its_mail_that_was_not_handled() {
        let mut accounts = opened();
        for _ in 0..1_000 {
            accounts.pay(1);
            charge(&mut accounts, 1, true);
        }
        let owed: Vec<u32> = (0..200).filter_map(|_| accounts.charge(1, 40, Some(7))).collect();
        assert_eq!(owed, [129 * 40]);
    }

    #[test]
    fn mail_of_other_stages_for_unpressed_workers_shields_no_source() {
        let mut accounts = opened();
        (0..1_000_000).for_each(|_| assert!(!charge(&mut accounts, 0, false)));
        assert!((0..200).any(|_| charge(&mut accounts, 1, true)));
    }

    #[test]
    fn an_account_is_forgotten_with_its_stage() {
        let mut accounts = opened();
        (0..100).for_each(|_| assert!(!charge(&mut accounts, 0, true)));
        accounts.forget(0);
        assert!(!(0..DEBT_MAX).any(|_| charge(&mut accounts, 1, true)));
    }

    #[test]
    fn unused_accounts_are_closed() {
        let mut accounts = opened();
        (0..CHECKUPS_MAX).for_each(|_| accounts.close_unused(|_| false));
        assert!(!charge(&mut accounts, 1, true) && accounts.are_kept());
        (0..=CHECKUPS_MAX).for_each(|_| accounts.close_unused(|_| false));
        assert!(!accounts.are_kept());
    }

    #[test]
    fn a_source_with_long_pauses_owes_too_much_if_its_receiver_stays_pressed() {
        let mut accounts = opened();
        let mut muted = 0;
        for _ in 0..100 {
            muted += (0..100).filter(|_| charge(&mut accounts, 1, true)).count();
            (0..10 * CHECKUPS_MAX).for_each(|_| accounts.close_unused(|worker| worker == 7));
        }
        assert_eq!(muted, 77);
    }
}
