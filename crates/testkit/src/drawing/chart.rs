//! Message sequence charts, as text and as SVG.

use std::fmt::{self, Write};

use super::svg::{Escaped, svg_head};
use crate::run::Sent;

/// A message sequence chart (ITU-T Z.120, its basic form): a line for each actor, time downwards, and an arrow for
/// each message at its delivery. The chart is text by [`Display`](fmt::Display), and a picture by [`Chart::svg`].
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::{Chart, replay};
///
/// struct Echo;
///
/// #[actor]
/// impl Echo {
///     #[message]
///     fn say(&self) {}
/// }
///
/// let run = replay(1, |system: &System| system.spawn(Echo).tell(Say));
/// let chart = Chart::of(run.deliveries());
/// assert!(chart.to_string().contains("Say"));
/// assert!(chart.svg().starts_with("<svg"));
/// ```
#[doc(alias = "sequence_diagram")]
#[doc(alias = "MSC")]
#[doc(alias = "trace")]
#[derive(Clone, Debug)]
pub struct Chart {
    actors: Vec<String>,
    arrows: Vec<Arrow>,
}

#[derive(Clone, Debug)]
struct Arrow {
    from: usize,
    to: usize,
    label: String,
    wrong: Option<String>,
    is_answer: bool,
}

impl Chart {
    /// Creates the chart of these deliveries. Actors stand in the order of their first delivery.
    pub fn of(deliveries: &[Sent]) -> Chart {
        let mut actors: Vec<String> = Vec::new();
        let mut place = |name: &str| {
            actors.iter().position(|known| known == name).unwrap_or_else(|| {
                actors.push(name.to_owned());
                actors.len() - 1
            })
        };
        let arrows = deliveries.iter().map(|sent| Arrow {
            from: place(&sent.from),
            to: place(&sent.to),
            label: sent.message.clone(),
            wrong: sent.wrong.as_ref().map(|wrong| wrong.lines().next().unwrap_or_default().to_owned()),
            is_answer: sent.message == "wake-up",
        });
        let arrows = arrows.collect();
        Chart { actors, arrows }
    }

    /// Returns the chart as an SVG document.
    pub fn svg(&self) -> String {
        const ROW: usize = 28;
        const TOP: usize = 46;
        /// The largest width of a letter. Most letters are narrower.
        const WIDTH: usize = 7;
        let texts = self.actors.iter().chain(self.arrows.iter().map(|arrow| &arrow.label));
        let column = texts.map(|text| text.chars().count() * WIDTH + 30).max().unwrap_or(0).max(100);
        let (width, height) = (column * self.actors.len().max(1), TOP + ROW * (self.arrows.len() + 1));
        let x = |actor: usize| column / 2 + column * actor;
        let mut svg = svg_head(width, height);
        let mut line = |text: fmt::Arguments<'_>| {
            writeln!(svg, "{text}").expect("a string takes what is written to it");
        };
        for (actor, name) in self.actors.iter().enumerate() {
            let x = x(actor);
            line(format_args!(r##"<path d="M{x} 30V{height}" stroke="#999" stroke-dasharray="3 3"/>"##));
            line(format_args!(
                r##"<rect x="{}" y="6" width="{}" height="24" fill="#eef" stroke="#336"/>"##,
                x - column / 2 + 5,
                column - 10
            ));
            line(format_args!(r##"<text x="{x}" y="22">{}</text>"##, Escaped(name)));
        }
        for (row, arrow) in self.arrows.iter().enumerate() {
            let y = TOP + ROW * row + ROW / 2;
            let (from, to) = (x(arrow.from), x(arrow.to));
            let colour = if arrow.wrong.is_some() { "#c00" } else { "#000" };
            line(format_args!("<g>"));
            if let Some(wrong) = &arrow.wrong {
                line(format_args!(r##"<title>{}</title>"##, Escaped(wrong)));
            }
            let dashes = if arrow.is_answer { r##" stroke-dasharray="5 3""## } else { "" };
            if arrow.from == arrow.to {
                line(format_args!(
                    r##"<path d="M{from} {} h24 v10 h-24" fill="none" stroke="{colour}"{dashes} marker-end="url(#head)"/>"##,
                    y - 5
                ));
                line(format_args!(
                    r##"<text x="{}" y="{}" text-anchor="start" fill="{colour}">{}</text>"##,
                    from + 28,
                    y + 4,
                    Escaped(&arrow.label)
                ));
            } else {
                line(format_args!(
                    r##"<path d="M{from} {y}H{to}" stroke="{colour}"{dashes} marker-end="url(#head)"/>"##
                ));
                line(format_args!(
                    r##"<text x="{}" y="{}" fill="{colour}">{}</text>"##,
                    (from + to) / 2,
                    y - 4,
                    Escaped(&arrow.label)
                ));
            }
            line(format_args!("</g>"));
        }
        line(format_args!("</svg>"));
        svg
    }
}

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest =
            |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let names = widest(&mut self.actors.iter());
        // Each label needs at least a dash and an arrowhead around it.
        let labels = widest(&mut self.arrows.iter().map(|arrow| &arrow.label)) + 4;
        let column = (names + 2).max(labels + 1);
        let middle = |actor: usize| column / 2 + column * actor;
        let put = |line: &mut Vec<char>, at: usize, text: &str| {
            for (nth, c) in text.chars().enumerate() {
                if line.len() <= at + nth {
                    line.resize(at + nth + 1, ' ');
                }
                line[at + nth] = c;
            }
        };
        let mut heads = Vec::new();
        let mut lines = Vec::new();
        for (actor, name) in self.actors.iter().enumerate() {
            put(&mut heads, middle(actor).saturating_sub(name.chars().count() / 2), name);
            put(&mut lines, middle(actor), "|");
        }
        let text = |line: Vec<char>| line.into_iter().collect::<String>().trim_end().to_owned();
        writeln!(f, "{}", text(heads))?;
        writeln!(f, "{}", text(lines.clone()))?;
        for arrow in &self.arrows {
            let mut line = lines.clone();
            let (from, to) = (middle(arrow.from), middle(arrow.to));
            if from == to {
                put(&mut line, from + 1, &format!("<- {}", arrow.label));
            } else {
                let (left, right) = (from.min(to), from.max(to));
                let shaft = if arrow.is_answer { "." } else { "-" };
                put(&mut line, left + 1, &shaft.repeat(right - left - 1));
                let (head, at) = if from < to { (">", right - 1) } else { ("<", left + 1) };
                put(&mut line, at, head);
                let label = &arrow.label;
                put(&mut line, left + 1 + (right - left - 1 - label.chars().count()) / 2, label);
            }
            write!(f, "{}", text(line))?;
            match &arrow.wrong {
                Some(wrong) => writeln!(f, "   !! {wrong}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
