//! Online facility location: quadrants of a town open facilities where their customers have too far to go.

use std::sync::Arc;

use playhouse::prelude::*;

use super::{SLICE, dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const FACLOC: Benchmark = program(
    "savina-facloc",
    "customer",
    "100,000 customers in a square of 500 by 500; a quadrant whose cost exceeds twice that of a facility splits",
    run,
);

const GRID: f64 = 500.0;
const ALPHA: f64 = 2.0;
/// Facilities deeper than this are not announced to all quadrants.
const CUTOFF: u32 = 3;

#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

impl Point {
    fn distance(self, other: Point) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

fn customers(count: usize) -> Vec<Point> {
    let mut dice = dice(0);
    let mut place = || f64::from(dice.roll()) * (GRID / 4_294_967_296.0);
    (0..count).map(|_| Point { x: place(), y: place() }).collect()
}

/// The state of a quadrant: its square, the facilities at its creation and its own, its customers.
struct Square {
    centre: Point,
    half: f64,
    depth: u32,
    facilities: Arc<[Point]>,
    customers: Vec<Point>,
    cost: f64,
}

impl Square {
    fn town() -> Self {
        let centre = Point { x: GRID / 2.0, y: GRID / 2.0 };
        Self::new(centre, GRID / 2.0, 0, &[])
    }

    fn new(centre: Point, half: f64, depth: u32, known: &[Point]) -> Self {
        let facilities = known.iter().copied().chain([centre]).collect();
        Self { centre, half, depth, facilities, customers: Vec::new(), cost: 0.0 }
    }

    /// Returns the quarter of `point`.
    fn quarter(&self, point: Point) -> usize {
        usize::from(point.x >= self.centre.x) + 2 * usize::from(point.y >= self.centre.y)
    }

    /// Takes a customer; says whether the square has to split now.
    fn take(&mut self, customer: Point) -> bool {
        let distances = self.facilities.iter().map(|facility| facility.distance(customer));
        self.cost += distances.fold(f64::INFINITY, f64::min);
        self.customers.push(customer);
        self.cost > ALPHA * std::f64::consts::SQRT_2 * GRID
    }

    /// Returns four squares, with the customers of this one.
    fn split(&mut self) -> [Square; 4] {
        let half = self.half / 2.0;
        let mut quarters = std::array::from_fn(|quarter| {
            let x = self.centre.x + if quarter % 2 == 1 { half } else { -half };
            let y = self.centre.y + if quarter / 2 == 1 { half } else { -half };
            Square::new(Point { x, y }, half, self.depth + 1, &self.facilities)
        });
        for customer in std::mem::take(&mut self.customers) {
            // A quarter that is over its limit from the start splits with its next customer.
            let _splits_later = quarters[self.quarter(customer)].take(customer);
        }
        quarters
    }
}

/// The totals of a quadrant and all below it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    customers: usize,
    facilities: u32,
    cost: f64,
}

impl Account {
    fn of(square: &Square) -> Self {
        Self { customers: square.customers.len(), facilities: 1, cost: square.cost }
    }

    fn sum(accounts: [Account; 4]) -> Self {
        // The quadrant's own facility still exists.
        let start = Account { facilities: 1, ..Account::default() };
        accounts.iter().fold(start, |sum, account| Self {
            customers: sum.customers + account.customers,
            facilities: sum.facilities + account.facilities,
            cost: sum.cost + account.cost,
        })
    }
}

/// The receiver of a quadrant's report.
enum Above {
    Quadrant(ActorRef<Quadrant>, usize),
    Finish(Finish<(Account, usize)>),
}

struct Quadrant {
    square: Square,
    work: Steps,
    above: Above,
    below: Option<[ActorRef<Quadrant>; 4]>,
    accounts: [Account; 4],
    waiting: usize,
    /// The number of facilities that other quadrants have announced since.
    news: usize,
}

impl Quadrant {
    fn new(square: Square, work: Steps, above: Above) -> Self {
        Self { square, work, above, below: None, accounts: [Account::default(); 4], waiting: 4, news: 0 }
    }

    fn report(&self, account: Account) {
        match &self.above {
            Above::Quadrant(above, quarter) => above.tell(Ended(*quarter, account)),
            Above::Finish(finish) => finish.reached((account, self.news)),
        }
    }
}

#[actor]
impl Quadrant {
    #[message]
    fn customer(&mut self, point: Point, ctx: &mut Context<Self>) {
        self.work.work();
        if let Some(below) = self.below {
            return below[self.square.quarter(point)].tell(Customer(point));
        }
        if self.square.take(point) {
            let mut quarter = 0;
            self.below = Some(self.square.split().map(|square| {
                let above = Above::Quadrant(ctx.this(), quarter);
                quarter += 1;
                ctx.spawn(Quadrant::new(square, self.work, above))
            }));
            if self.square.depth < CUTOFF {
                self.opened(4);
            }
        }
    }

    /// This number of facilities has opened below.
    #[message]
    fn opened(&mut self, count: usize) {
        self.news += count;
        if let Above::Quadrant(above, _) = &self.above {
            above.tell(Opened(count));
        }
    }

    /// Ends the customers.
    #[message]
    fn end(&mut self) {
        match self.below {
            Some(below) => below.iter().for_each(|quadrant| quadrant.tell(End)),
            None => self.report(Account::of(&self.square)),
        }
    }

    #[message]
    fn ended(&mut self, quarter: usize, account: Account) {
        self.accounts[quarter] = account;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.report(Account::sum(self.accounts));
        }
    }
}

struct Producer {
    customers: std::vec::IntoIter<Point>,
    town: ActorRef<Quadrant>,
}

#[actor]
impl Producer {
    #[message]
    fn produce(&mut self, ctx: &mut Context<Self>) {
        self.customers.by_ref().take(SLICE as usize).for_each(|customer| self.town.tell(Customer(customer)));
        if self.customers.len() > 0 {
            ctx.this().tell(Produce);
        } else {
            self.town.tell(End);
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let customers = customers(size.smoke_or(500, 100_000));
    let count = customers.len() as u64;
    let expected = Town::settle(&customers);
    let producer = |finish| {
        let town = system.spawn(Quadrant::new(Square::town(), work, Above::Finish(finish)));
        Producer { customers: customers.into_iter(), town }
    };
    let (elapsed, found) = lead(system, size, producer, Produce)?;
    check("the customers, facilities and cost, and the facilities told of", expected, found)?;
    Ok(Outcome::new(count, elapsed))
}

/// The same computation without actors.
struct Town {
    square: Square,
    below: Option<Box<[Town; 4]>>,
}

impl Town {
    fn new(square: Square) -> Self {
        Self { square, below: None }
    }

    fn settle(customers: &[Point]) -> (Account, usize) {
        let mut town = Town::new(Square::town());
        customers.iter().for_each(|customer| town.take(*customer));
        (town.account(), town.told_of())
    }

    fn take(&mut self, customer: Point) {
        if let Some(below) = &mut self.below {
            return below[self.square.quarter(customer)].take(customer);
        }
        if self.square.take(customer) {
            self.below = Some(Box::new(self.square.split().map(Town::new)));
        }
    }

    fn account(&self) -> Account {
        match &self.below {
            Some(below) => Account::sum(below.each_ref().map(Town::account)),
            None => Account::of(&self.square),
        }
    }

    fn told_of(&self) -> usize {
        match &self.below {
            Some(below) if self.square.depth < CUTOFF => 4 + below.iter().map(Town::told_of).sum::<usize>(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_town_keeps_its_customers() {
        let (account, told_of) = Town::settle(&customers(2_000));
        assert_eq!(account.customers, 2_000);
        assert!(account.facilities > 4 && told_of >= 4, "{account:?} {told_of}");
    }
}
