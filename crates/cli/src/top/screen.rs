//! The screen, as it is drawn.

use playhouse::Snapshot;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::table::{Pane, Table, theaters, workers};
use super::text::{headline, totals};
use super::view::View;

/// The lines of workers, at most.
const WORKERS_MAX: usize = 8;
/// The lines below the theaters that are left for workers and a pane, at least where the screen has them.
const REST_MIN: u16 = 10;

const HEADING: Style = Style::new().add_modifier(Modifier::REVERSED);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

const HELP: &str = "\
 Up, Down      choose another theater
 Tab, 1 to 4   actors, messages, stages, links
 Left, Right   sort by another column
 r             reverse the order
 /             show only rows with a text; Enter keeps it, Esc clears it
 p             pause, and go on
 ?             this help
 q, Ctrl-C     quit

 BUSY     share of the time since the last look that was spent in handlers
 QUEUED   messages that wait
 MUTED    stages that wait, because they sent to an overloaded actor
 STEALS, PARKS   per second: stages stolen from others, parked threads
 STUCK    stuck handlers that cost a worker its thread, so far
 DEAD     dead letters, so far
 MEDIAN, P99, LONGEST, COUNTED   since the first look at the theater";

/// The keys, the most important first.
const KEYS: [&str; 8] = [
    "q quit",
    "? help",
    "Tab pane",
    "\u{2191}\u{2193} theater",
    "\u{2190}\u{2192} sort",
    "/ filter",
    "r reverse",
    "p pause",
];

pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    let shown = theaters_shown(view.seen.len(), area.height);
    let has_more = view.seen.len() > shown;
    let [top, theaters_area, rest, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1 + shown.max(1) as u16 + u16::from(has_more)),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_keys(frame, keys, view);
    if view.seen.is_empty() {
        return frame.render_widget(Paragraph::new(format!(" looking at {} ...", view.chosen)), top);
    }
    let mut lines = rows(&theaters(&view.seen), area.width, None);
    let chosen = view.seen.iter().position(|seen| seen.address == view.chosen).unwrap_or(0);
    lines[1 + chosen].spans[0] = Span::styled("\u{25b6}", STRONG);
    // The chosen theater can be seen.
    lines.drain(1..1 + (chosen + 1).saturating_sub(shown));
    lines.truncate(1 + shown);
    if has_more {
        lines.push(Line::styled(format!("  {} more", view.seen.len() - shown), FAINT));
    }
    frame.render_widget(Paragraph::new(lines), theaters_area);
    let width = usize::from(area.width);
    match view.shown().map(|seen| (&seen.address, &seen.state)) {
        Some((address, Ok(snapshot))) => {
            let head = [
                Line::styled(fit(&headline(address, snapshot), ", ", width), STRONG),
                Line::raw(fit(&totals(snapshot), ", ", width)),
            ];
            frame.render_widget(Paragraph::new(head.to_vec()), top);
            draw_theater(frame, rest, view, snapshot);
        }
        Some((address, Err(why))) => {
            frame.render_widget(
                Paragraph::new(vec![
                    Line::styled(fit(&[format!("Theater {address}")], "", width), STRONG),
                    Line::styled(fit(std::slice::from_ref(why), "", width), ALARM),
                ]),
                top,
            );
        }
        None => {}
    }
    if view.help {
        let height = HELP.lines().count() as u16 + 2;
        let help = Rect { x: 0, y: 1, width: area.width, height: height.min(area.height.saturating_sub(1)) };
        frame.render_widget(Clear, help);
        frame.render_widget(Paragraph::new(format!("\n{HELP}\n")), help);
    }
}

/// Returns how many of `all` theaters have a line each on a screen of this height.
fn theaters_shown(all: usize, height: u16) -> usize {
    // The head, the headings of the theaters, and the keys.
    let fixed = 2 + 1 + 1;
    let lines = usize::from(height.saturating_sub(fixed + REST_MIN)).max(1);
    // The line that counts the others takes one.
    if all <= lines { all } else { (lines - 1).max(1) }
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let width = usize::from(area.width);
    let line = if view.is_typing {
        // The end is where the user types.
        let shown: Vec<char> = format!(" /{}\u{2588}", view.filter).chars().collect();
        Line::styled(shown[shown.len().saturating_sub(width)..].iter().collect::<String>(), STRONG)
    } else {
        let mut parts = Vec::new();
        if view.is_paused {
            parts.push("PAUSED".to_owned());
        }
        if !view.filter.is_empty() {
            parts.push(format!("filter {:?}", view.filter));
        }
        parts.extend(KEYS.map(str::to_owned));
        Line::styled(fit(&parts, "   ", width), FAINT)
    };
    frame.render_widget(Paragraph::new(line), area);
}

/// Joins the parts behind a space, as far as they fit into the width. The first part is cut where it alone is too wide.
fn fit(parts: &[String], separator: &str, width: usize) -> String {
    format!(" {}", playhouse_console::progress::fit(parts, separator, width.saturating_sub(1)))
}

fn draw_theater(frame: &mut Frame<'_>, area: Rect, view: &View, snapshot: &Snapshot) {
    let all_workers = workers(snapshot);
    let shown = all_workers.rows.len().min(WORKERS_MAX).min(usize::from(area.height / 3).max(1));
    let more = all_workers.rows.len() > shown;
    let [workers_area, tabs, table] = Layout::vertical([
        Constraint::Length(2 + shown as u16 + u16::from(more)),
        Constraint::Length(1),
        Constraint::Fill(1),
    ])
    .areas(area);
    let mut lines = vec![Line::default()];
    lines.extend(rows(&all_workers, area.width, None).into_iter().take(1 + shown));
    if more {
        lines.push(Line::styled(format!("  {} more", all_workers.rows.len() - shown), FAINT));
    }
    frame.render_widget(Paragraph::new(lines), workers_area);
    let names = Pane::ALL.iter().enumerate().flat_map(|(at, pane)| {
        let style = if *pane == view.pane { STRONG.add_modifier(Modifier::UNDERLINED) } else { FAINT };
        [Span::raw("  "), Span::styled(format!("{} {}", at + 1, pane.name()), style)]
    });
    frame.render_widget(Line::from_iter(names), tabs);
    let mut shown = view.pane.table(snapshot, view.sort());
    let all = shown.rows.len();
    shown.filter(&view.filter);
    if view.is_reversed() {
        shown.rows.reverse();
    }
    let mut lines = rows(&shown, area.width, Some(view.sort()));
    if all == 0 {
        lines.push(Line::styled("  nothing since the last look", FAINT));
    } else if shown.rows.is_empty() {
        lines.push(Line::styled(format!("  none of {all} rows has the text {:?}", view.filter), FAINT));
    }
    frame.render_widget(Paragraph::new(lines), table);
}

/// The lines of a table: its headings, and its rows. Texts are cut where the screen is too narrow.
fn rows(table: &Table, width: u16, sort: Option<usize>) -> Vec<Line<'static>> {
    /// The letters that are left of a text, at least.
    const TEXT_MIN: usize = 8;
    let mut widths = table.widths();
    // An address that is cut names no theater: the last columns are hidden instead.
    let texts = (0..widths.len()).filter(|column| !table.is_number(*column)).count();
    let text_min = if texts == 1 { usize::MAX } else { TEXT_MIN };
    let all = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    // The widest text gives way, a column at a time.
    while all(&widths) > usize::from(width) {
        let texts = (0..widths.len()).filter(|column| !table.is_number(*column) && widths[*column] > text_min);
        let Some(widest) = texts.max_by_key(|column| widths[*column]) else { break };
        widths[widest] -= 1;
    }
    let cell = |column: usize, text: &str| {
        let width = widths[column];
        let long = text.chars().count() > width;
        let text = if long { text.chars().take(width - 1).chain(['\u{2026}']).collect() } else { text.to_owned() };
        if table.is_number(column) { format!(" {text:>width$} ") } else { format!(" {text:<width$} ") }
    };
    let heading = table.headings.iter().enumerate().map(|(column, heading)| {
        let sorted = if sort == Some(column) { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::empty() };
        Span::styled(cell(column, heading), HEADING.add_modifier(sorted))
    });
    let mut lines = vec![Line::from_iter(std::iter::once(Span::styled(" ", HEADING)).chain(heading)).style(HEADING)];
    for row in &table.rows {
        let cells = row.iter().enumerate().map(|(column, value)| {
            if table.is_remark(row, column) {
                return Span::styled(format!(" {}", value.text), ALARM);
            }
            let alarming = matches!(&*value.text, "overloaded" | "broken" | "calling again" | "lost");
            Span::styled(cell(column, &value.text), if alarming { ALARM } else { Style::new() })
        });
        lines.push(Line::from_iter(std::iter::once(Span::raw(" ")).chain(cells)));
    }
    lines
}
