//! A bank: tellers transfer money between accounts, which write statements; an auditor takes the statements. The program
//! stands in for a student's program. The thesis gives only its name.

use playhouse::prelude::*;

use super::passing::{Payload, pass};

const ACCOUNTS: usize = 16;
const TELLERS: usize = 4;

struct Entry {
    amount: i64,
    text: String,
}

impl Payload for Entry {
    fn deep_copy(&self) -> Self {
        Entry { amount: self.amount, text: self.text.deep_copy() }
    }
}

#[derive(Default)]
struct Account {
    number: usize,
    statement: Vec<Entry>,
}

#[actor]
impl Account {
    #[message]
    fn withdraw(&mut self, amount: i64, to: ActorRef<Account>, text: String) {
        to.tell(Deposit(pass(amount), pass(format!("{text} from account {}", self.number))));
        self.statement.push(Entry { amount: -amount, text });
    }

    #[message]
    fn deposit(&mut self, amount: i64, text: String) {
        self.statement.push(Entry { amount, text });
    }

    #[message]
    fn close(&mut self, auditor: ActorRef<Auditor>, ctx: &mut Context<Self>) {
        auditor.tell(Audit(pass(self.number), pass(std::mem::take(&mut self.statement))));
        ctx.stop();
    }
}

struct Teller {
    number: usize,
    accounts: Vec<ActorRef<Account>>,
}

#[actor]
impl Teller {
    #[message]
    fn transfer(&mut self, transfers: usize) {
        for transfer in 0..transfers {
            let [giver, taker] = [transfer + self.number, transfer * 7 + 1].map(|n| self.accounts[n % ACCOUNTS]);
            let text = format!("transfer {transfer} by teller {}", self.number);
            giver.tell(Withdraw(pass(transfer as i64), pass(taker), pass(text)));
        }
    }
}

#[derive(Default)]
struct Auditor {
    closed: Vec<bool>,
    sum: i64,
    deposits: usize,
    withdrawals: usize,
}

#[actor]
impl Auditor {
    #[message]
    fn audit(&mut self, account: usize, statement: Vec<Entry>) {
        self.closed.resize(ACCOUNTS, false);
        self.closed[account] = true;
        for entry in statement {
            self.sum += entry.amount;
            if entry.text.contains("from account") {
                self.deposits += 1;
            } else {
                self.withdrawals += 1;
            }
        }
    }

    #[message]
    fn is_balanced(&self, transfers: usize) -> bool {
        let is_complete = self.closed.len() == ACCOUNTS && self.closed.iter().all(|closed| *closed);
        is_complete && self.sum == 0 && [self.deposits, self.withdrawals] == [transfers; 2]
    }
}

pub(super) fn run(system: &System, transfers: usize) -> playhouse::Result<bool> {
    let account = |number| system.spawn(Account { number, ..Account::default() });
    let accounts: Vec<_> = (0..ACCOUNTS).map(account).collect();
    for number in 0..TELLERS {
        let teller = system.spawn(Teller { number, accounts: accounts.to_vec() });
        teller.tell(Transfer(pass(transfers)));
    }
    system.run_until_idle();
    let auditor = system.spawn(Auditor::default());
    for account in accounts {
        account.tell(Close(pass(auditor)));
    }
    system.run_until_idle();
    Ok(auditor.ask(IsBalanced(TELLERS * transfers)).wait()?)
}
