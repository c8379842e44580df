//! Banking: a transfer debits one account and credits another, and no account begins its next transfer before the last one has
//! ended.

use std::collections::VecDeque;

use playhouse::prelude::*;

use super::{SLICE, answer, dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::random::Dice;
use crate::harness::steps::Steps;

pub(crate) const BANKING: Benchmark = program(
    "savina-banking",
    "transaction",
    "50,000 transfers between 1,000 accounts; the one debited asks the one credited and does nothing else meanwhile",
    run,
);

const ACCOUNTS: usize = 1_000;
const BALANCE: i64 = 1_000;

/// The source, the target, and the amount.
type Transfer = (usize, usize, i64);

/// Returns the original's choice: from the first four fifths to any later account.
fn transfers(count: u32) -> Vec<Transfer> {
    let next = |dice: &mut Dice| {
        let from = dice.pick(ACCOUNTS / 10 * 8);
        (from, from + 1 + dice.pick(ACCOUNTS - from - 1), dice.pick(1_000) as i64)
    };
    let mut dice = dice(0);
    (0..count).map(|_| next(&mut dice)).collect()
}

/// Queues debits while a transfer is in progress.
struct Account {
    balance: i64,
    work: Steps,
    teller: ActorRef<Teller>,
    busy: bool,
    waiting: VecDeque<(i64, ActorRef<Account>)>,
}

impl Account {
    fn transfer(&mut self, amount: i64, to: ActorRef<Account>, ctx: &mut Context<Self>) {
        self.busy = true;
        self.balance -= amount;
        ctx.ask(to, Credit(amount)).then(|this, answer, ctx| {
            if answer.is_err() {
                return;
            }
            this.teller.tell(Through);
            this.busy = false;
            if let Some((amount, to)) = this.waiting.pop_front() {
                this.transfer(amount, to, ctx);
            }
        });
    }
}

#[actor]
impl Account {
    #[message]
    fn debit(&mut self, amount: i64, to: ActorRef<Account>, ctx: &mut Context<Self>) {
        self.work.work();
        if self.busy {
            self.waiting.push_back((amount, to));
        } else {
            self.transfer(amount, to, ctx);
        }
    }

    #[message]
    fn credit(&mut self, amount: i64) {
        self.work.work();
        self.balance += amount;
    }

    #[message]
    fn balance(&self) -> i64 {
        self.balance
    }
}

struct Teller {
    transfers: Vec<Transfer>,
    work: Steps,
    accounts: Vec<ActorRef<Account>>,
    sent: usize,
    through: usize,
    finish: Finish<Vec<ActorRef<Account>>>,
}

#[actor]
impl Teller {
    #[started]
    fn open(&mut self, ctx: &mut Context<Self>) {
        let (teller, work) = (ctx.this(), self.work);
        let account = || Account { balance: BALANCE, work, teller, busy: false, waiting: VecDeque::new() };
        self.accounts = (0..ACCOUNTS).map(|_| ctx.spawn(account())).collect();
    }

    #[message]
    fn order(&mut self, ctx: &mut Context<Self>) {
        let until = (self.sent + SLICE as usize).min(self.transfers.len());
        for &(from, to, amount) in &self.transfers[self.sent..until] {
            self.accounts[from].tell(Debit(amount, self.accounts[to]));
        }
        self.sent = until;
        if until < self.transfers.len() {
            ctx.this().tell(Order);
        }
    }

    #[message]
    fn through(&mut self) {
        self.through += 1;
        if self.through == self.transfers.len() {
            self.finish.reached(std::mem::take(&mut self.accounts));
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let count = size.smoke_or(2_000, 50_000);
    let transfers = transfers(count);
    let expected = balances(&transfers);
    let teller = |finish| Teller { transfers, work, accounts: Vec::new(), sent: 0, through: 0, finish };
    let (elapsed, accounts) = lead(system, size, teller, Order)?;
    let found = accounts.iter().map(|account| answer(account.ask(Balance).wait())).collect::<Result<Vec<_>, _>>()?;
    check("that the balances are those of all transfers", true, expected == found)?;
    Ok(Outcome::new(u64::from(count), elapsed))
}

fn balances(transfers: &[Transfer]) -> Vec<i64> {
    let mut balances = vec![BALANCE; ACCOUNTS];
    for &(from, to, amount) in transfers {
        balances[from] -= amount;
        balances[to] += amount;
    }
    balances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_go_to_accounts_behind_and_keep_the_sum() {
        let transfers = transfers(1_000);
        assert!(transfers.iter().all(|&(from, to, _)| from < to && to < ACCOUNTS));
        assert_eq!(balances(&transfers).iter().sum::<i64>(), BALANCE * ACCOUNTS as i64);
    }
}
