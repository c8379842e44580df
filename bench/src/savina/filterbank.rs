//! Filter bank: a signal goes through eight channels of delays and filters, and comes together again.

use std::collections::VecDeque;

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const FILTERBANK: Benchmark = program(
    "savina-filterbank",
    "sample",
    "34,816 samples through 8 channels of delay, filter (16,384 columns), sampler, delay, filter, then a sum",
    run,
);

const CHANNELS: usize = 8;
/// The samples count up to this, and begin again.
const SAMPLE_MAX: u32 = 1_000;

/// The first filter's coefficients of a channel.
fn analysis(channel: usize, columns: usize) -> Vec<f64> {
    (0..columns).map(|i| (i * columns + channel * CHANNELS + i + channel + i + 1) as f64 * 0.0001).collect()
}

/// The second filter's coefficients of a channel.
fn synthesis(channel: usize, columns: usize) -> Vec<f64> {
    (0..columns).map(|i| (i * channel + channel * channel + i + channel) as f64 * 0.0001).collect()
}

/// A value of the signal.
#[derive(Message)]
struct Value(f64);

/// The operation of a channel's actor on its values.
trait Step: Send + 'static {
    /// The output, if there is one.
    fn take(&mut self, value: f64) -> Option<f64>;
}

struct Stage<S> {
    step: S,
    next: Recipient<Value>,
    work: Steps,
}

impl<S: Step> Actor for Stage<S> {}

impl<S: Step> Handler<Value> for Stage<S> {
    fn handle(&mut self, Value(value): Value, _: &mut Context<Self>) {
        self.work.work();
        if let Some(value) = self.step.take(value) {
            self.next.tell(Value(value));
        }
    }
}

struct Delay {
    held: Vec<f64>,
    at: usize,
}

impl Step for Delay {
    fn take(&mut self, value: f64) -> Option<f64> {
        let out = std::mem::replace(&mut self.held[self.at], value);
        self.at = (self.at + 1) % self.held.len();
        Some(out)
    }
}

struct Filter {
    coefficients: Vec<f64>,
    values: Vec<f64>,
    at: usize,
    full: bool,
}

impl Step for Filter {
    fn take(&mut self, value: f64) -> Option<f64> {
        self.values[self.at] = value;
        self.at = (self.at + 1) % self.values.len();
        self.full |= self.at == 0;
        self.full.then(|| self.values.iter().zip(self.coefficients.iter().rev()).map(|(v, c)| v * c).sum())
    }
}

/// Passes one of this number of values through, and zeros for the others.
struct Sampler {
    rate: usize,
    seen: usize,
}

impl Step for Sampler {
    fn take(&mut self, value: f64) -> Option<f64> {
        let passes = self.seen == 0;
        self.seen = (self.seen + 1) % self.rate;
        Some(if passes { value } else { 0.0 })
    }
}

/// The last of a channel: says which one it is.
struct Tagger {
    channel: usize,
    combiner: ActorRef<Combiner>,
    work: Steps,
}

impl Actor for Tagger {}

impl Handler<Value> for Tagger {
    fn handle(&mut self, Value(value): Value, _: &mut Context<Self>) {
        self.work.work();
        self.combiner.tell(Join(self.channel, value));
    }
}

/// Adds the outputs of all channels at the same position.
struct Combiner {
    outputs: usize,
    channels: [VecDeque<f64>; CHANNELS],
    sums: Vec<f64>,
    work: Steps,
    finish: Finish<Vec<f64>>,
}

#[actor]
impl Combiner {
    #[message]
    fn join(&mut self, channel: usize, value: f64) {
        self.work.work();
        self.channels[channel].push_back(value);
        if self.channels.iter().any(VecDeque::is_empty) {
            return;
        }
        self.sums.push(self.channels.iter_mut().filter_map(VecDeque::pop_front).sum());
        if self.sums.len() == self.outputs {
            self.finish.reached(std::mem::take(&mut self.sums));
        }
    }
}

/// Gives every channel each sample.
struct Source {
    samples: u32,
    sent: u32,
    channels: Vec<Recipient<Value>>,
}

#[actor]
impl Source {
    #[message]
    fn sample(&mut self, ctx: &mut Context<Self>) {
        let value = f64::from(self.sent % SAMPLE_MAX);
        self.channels.iter().for_each(|channel| channel.tell(Value(value)));
        self.sent += 1;
        if self.sent < self.samples {
            ctx.this().tell(Sample);
        }
    }
}

/// Returns the numbers of columns and samples: the original's two for each column, and 2,048 more (a few at the smoke size).
fn plan(size: Size) -> (usize, usize) {
    let columns = size.smoke_or(32, 16_384);
    (columns, 2 * columns + size.smoke_or(16, 2_048))
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (columns, samples) = plan(size);
    // Each filter has nothing to say before it is full.
    let outputs = samples - 2 * (columns - 1);
    let source = |finish| {
        let channels = Default::default();
        let combiner = system.spawn(Combiner { outputs, channels, sums: Vec::new(), work, finish });
        let channels = (0..CHANNELS).map(|channel| build(system, channel, columns, combiner, work)).collect();
        Source { samples: samples as u32, sent: 0, channels }
    };
    let (elapsed, sums) = lead(system, size, source, Sample)?;
    check("that the sums are those of the signal", true, sums == expected(columns, samples))?;
    Ok(Outcome::new(samples as u64, elapsed))
}

/// Builds the actors of a channel from its end; returns the first.
fn build(
    system: &System,
    channel: usize,
    columns: usize,
    combiner: ActorRef<Combiner>,
    work: Steps,
) -> Recipient<Value> {
    let delay = || Delay { held: vec![0.0; columns - 1], at: 0 };
    let filter = |coefficients| Filter { coefficients, values: vec![0.0; columns], at: 0, full: false };
    let next = system.spawn(Tagger { channel, combiner, work }).recipient();
    let next = system.spawn(Stage { step: filter(synthesis(channel, columns)), next, work }).recipient();
    let next = system.spawn(Stage { step: delay(), next, work }).recipient();
    let next = system.spawn(Stage { step: Sampler { rate: columns, seen: 0 }, next, work }).recipient();
    let next = system.spawn(Stage { step: filter(analysis(channel, columns)), next, work }).recipient();
    system.spawn(Stage { step: delay(), next, work }).recipient()
}

/// Returns the sums, without the values of the first filter that the sampler drops: zeros do not change a sum.
fn expected(columns: usize, samples: usize) -> Vec<f64> {
    // The output of a delay at `time`.
    let delayed =
        |time: usize| if time < columns - 1 { 0.0 } else { f64::from((time - (columns - 1)) as u32 % SAMPLE_MAX) };
    // The content of the filter's slot at `time`, where it is full.
    let latest = |place: usize, time: usize| time - (time - place) % columns;
    let (first_out, outputs) = (columns - 1, samples - (columns - 1));
    let mut sums = vec![0.0; outputs - (columns - 1)];
    for channel in 0..CHANNELS {
        let (h, f) = (analysis(channel, columns), synthesis(channel, columns));
        // The samples that pass, at the places `0`, `columns`, and so on.
        let passed: Vec<f64> = (0..outputs)
            .step_by(columns)
            .map(|out| {
                let time = first_out + out;
                (0..columns).map(|place| delayed(latest(place, time)) * h[columns - 1 - place]).sum()
            })
            .collect();
        let second = |time: usize| match time.checked_sub(columns - 1) {
            Some(at) if at % columns == 0 => passed[at / columns],
            _ => 0.0,
        };
        for (out, sum) in sums.iter_mut().enumerate() {
            let time = columns - 1 + out;
            *sum += (0..columns)
                .map(|place| (place, second(latest(place, time))))
                .filter(|&(_, value)| value != 0.0)
                .map(|(place, value)| value * f[columns - 1 - place])
                .sum::<f64>();
        }
    }
    sums
}
