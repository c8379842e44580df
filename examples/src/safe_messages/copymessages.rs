//! A client sends a list to a server. One actor sorts the list, and a tree of other actors averages it at the same time. The
//! sorter changes the list while the averagers may still read it. It is the only argument of the program that is copied on
//! write.

use std::sync::Arc;

use playhouse::prelude::*;

use super::passing::{pass, share, write};

/// Longer parts are divided.
const PART: usize = 4;

struct Client {
    sum: Option<u64>,
    sorted: Option<Arc<Vec<u64>>>,
}

#[actor]
impl Client {
    #[message]
    fn answer(&mut self, sum: u64) {
        self.sum = Some(sum);
    }

    #[message]
    fn sorted(&mut self, list: Arc<Vec<u64>>) {
        self.sorted = Some(list);
    }

    #[message]
    fn is_right(&self, numbers: u64) -> bool {
        let sorted = self.sorted.as_ref().is_some_and(|list| list.len() as u64 == numbers && list.is_sorted());
        sorted && self.sum == Some(numbers * (numbers - 1) / 2)
    }
}

struct Server;

#[actor]
impl Server {
    #[message]
    fn sort_average(&mut self, list: Arc<Vec<u64>>, client: ActorRef<Client>, ctx: &mut Context<Self>) {
        let averager = ctx.spawn(Averager { above: Above::Client(client), missing: 0, sum: 0 });
        averager.tell(Average(share(&list), pass(0), pass(list.len())));
        let sorter = ctx.spawn(Sorter);
        sorter.tell(Sort(pass(list), pass(client)));
    }
}

struct Sorter;

#[actor]
impl Sorter {
    #[message]
    fn sort(&mut self, mut list: Arc<Vec<u64>>, client: ActorRef<Client>, ctx: &mut Context<Self>) {
        write(&mut list).sort_unstable();
        client.tell(Sorted(pass(list)));
        ctx.stop();
    }
}

/// The receiver of an averager's sum.
enum Above {
    Averager(ActorRef<Averager>),
    Client(ActorRef<Client>),
}

struct Averager {
    above: Above,
    missing: u32,
    sum: u64,
}

impl Averager {
    fn end(&mut self, ctx: &mut Context<Self>) {
        match self.above {
            Above::Averager(above) => above.tell(Sum(pass(self.sum))),
            Above::Client(client) => client.tell(Answer(pass(self.sum))),
        }
        ctx.stop();
    }
}

#[actor]
impl Averager {
    #[message]
    fn average(&mut self, list: Arc<Vec<u64>>, from: usize, to: usize, ctx: &mut Context<Self>) {
        if to - from <= PART {
            self.sum = list[from..to].iter().sum();
            return self.end(ctx);
        }
        let middle = from.midpoint(to);
        self.missing = 2;
        let [left, right] = [(); 2]
            .map(|()| Averager { above: Above::Averager(ctx.this()), missing: 0, sum: 0 })
            .map(|averager| ctx.spawn(averager));
        left.tell(Average(share(&list), pass(from), pass(middle)));
        right.tell(Average(pass(list), pass(middle), pass(to)));
    }

    #[message]
    fn sum(&mut self, sum: u64, ctx: &mut Context<Self>) {
        self.sum += sum;
        self.missing -= 1;
        if self.missing == 0 {
            self.end(ctx);
        }
    }
}

pub(super) fn run(system: &System, numbers: usize) -> playhouse::Result<bool> {
    let client = system.spawn(Client { sum: None, sorted: None });
    let server = system.spawn(Server);
    let list = Arc::new((0..numbers as u64).rev().collect());
    server.tell(SortAverage(pass(list), pass(client)));
    system.run_until_idle();
    Ok(client.ask(IsRight(numbers as u64)).wait()?)
}
