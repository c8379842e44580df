//! Lines through the times of a family of benchmarks: the cost of one more ring, and the common cost.
//!
//! The papers report ring benchmarks by linear regression over the number of rings (salsa-lite-migration §4).
//!
//! No library replaces the 15 lines: linregress depends on nalgebra.

use std::fmt;

use super::figures::Report;
use super::latency::duration;
use super::line::Line;

/// A line through the times of `family-N`, over N.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The common name of the benchmarks, without their numbers.
    pub family: String,
    /// The time of a run with none, in nanoseconds.
    pub intercept_ns: f64,
    /// The addition by each one, in nanoseconds.
    pub slope_ns: f64,
    /// The coefficient of correlation.
    pub r: f64,
}

impl Fit {
    /// The line through these points: N, and the time of a run in nanoseconds.
    fn of(family: &str, points: &[(f64, f64)]) -> Option<Self> {
        let Line { intercept, slope, r } = Line::through(points)?;
        Some(Self { family: family.to_owned(), intercept_ns: intercept, slope_ns: slope, r })
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fit { family, intercept_ns, slope_ns, r } = self;
        let signed = |ns: f64| format!("{}{}", if ns < 0.0 { "-" } else { "" }, duration(ns.abs()));
        let (all, each) = (signed(*intercept_ns), signed(*slope_ns));
        write!(f, "{family}: a run with N takes {all} + N x {each} (r = {r:.3})")
    }
}

/// Returns the lines through those of these reports that are families of three or more, in the order of their first members.
pub fn fits(reports: &[Report]) -> Vec<Fit> {
    let mut families: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for report in reports {
        let Some((family, Ok(n))) = report.bench.rsplit_once('-').map(|(family, n)| (family, n.parse::<f64>())) else {
            continue;
        };
        let point = (n, report.ns_per_op * report.ops as f64);
        match families.iter_mut().find(|known| known.0 == family) {
            Some(known) => known.1.push(point),
            None => families.push((family, vec![point])),
        }
    }
    families.iter().filter_map(|(family, points)| Fit::of(family, points)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::tests;

    fn report(name: &str, ops: u64, ns_per_op: f64) -> Report {
        Report { bench: name.to_owned(), ops, ..tests::report(ns_per_op, None) }
    }

    #[test]
    fn a_family_of_three_has_a_line() {
        let mut reports = vec![
            report("count", 10, 1.0),
            report("rrings-1", 1, 3_000.0),
            report("rrings-32", 32, 1_062.5),
            report("migration-rings-1", 1, 5.0),
        ];
        assert_eq!(fits(&reports), []);
        reports.push(report("rrings-320", 320, 1_006.25));
        let [fit] = &fits(&reports)[..] else { panic!("not one") };
        assert!((fit.intercept_ns - 2_000.0).abs() < 1e-6 && (fit.slope_ns - 1_000.0).abs() < 1e-9, "{fit:?}");
        assert_eq!(fit.to_string(), "rrings: a run with N takes 2.00 µs + N x 1000 ns (r = 1.000)");
    }
}
