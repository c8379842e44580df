//! How it is drawn.

use playhouse::Snapshot;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::table::{Pane, Table, theaters, workers};
use super::text::{headline, totals};
use super::view::View;

/// Theaters and workers are shown in so many lines at most, so that there is room for the rest.
const THEATERS_MAX: usize = 4;
const WORKERS_MAX: usize = 8;

const HEADING: Style = Style::new().add_modifier(Modifier::REVERSED);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

const HELP: &str = "\
 Up, Down      another theater
 Tab, 1 to 4   actors, messages, stages, links
 Left, Right   sort by another column
 ?             this
 q, Ctrl-C     quit

 BUSY     how much of the time since the last look was spent in handlers
 QUEUED   messages that wait
 MUTED    stages that wait, since they sent to somebody who is overloaded
 STEALS, PARKS   per second: stages taken from others, going to sleep
 STUCK    how often a handler kept its worker, whose work another thread took
 DEAD     messages that reached nobody, so far
 MEDIAN, P99, LONGEST, COUNTED   since somebody began to look";

pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    let [top, theaters_area, rest, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1 + view.seen.len().clamp(1, THEATERS_MAX) as u16),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(
        Paragraph::new(" Tab pane   \u{2190}\u{2192} sort   \u{2191}\u{2193} theater   ? help   q quit").style(FAINT),
        keys,
    );
    if view.seen.is_empty() {
        return frame.render_widget(Paragraph::new(format!(" looking at {} ...", view.chosen)), top);
    }
    let mut lines = rows(&theaters(&view.seen), area.width, None);
    let chosen = view.seen.iter().position(|seen| seen.address == view.chosen).unwrap_or(0);
    lines[1 + chosen].spans[0] = Span::styled("\u{25b6}", STRONG);
    // The one that is chosen can be seen.
    lines.drain(1..1 + chosen.saturating_sub(THEATERS_MAX - 1));
    frame.render_widget(Paragraph::new(lines), theaters_area);
    match view.shown().map(|seen| (&seen.address, &seen.state)) {
        Some((address, Ok(snapshot))) => {
            let head = [
                Line::styled(format!(" {}", headline(address, snapshot)), STRONG),
                Line::raw(format!(" {}", totals(snapshot))),
            ];
            frame.render_widget(Paragraph::new(head.to_vec()), top);
            draw_theater(frame, rest, view, snapshot);
        }
        Some((address, Err(why))) => {
            frame.render_widget(
                Paragraph::new(vec![
                    Line::styled(format!(" Theater {address}"), STRONG),
                    Line::styled(format!(" {why}"), ALARM),
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
        lines.push(Line::styled(format!("  and {} more", all_workers.rows.len() - shown), FAINT));
    }
    frame.render_widget(Paragraph::new(lines), workers_area);
    let names = Pane::ALL.iter().enumerate().flat_map(|(at, pane)| {
        let style = if *pane == view.pane { STRONG.add_modifier(Modifier::UNDERLINED) } else { FAINT };
        [Span::raw("  "), Span::styled(format!("{} {}", at + 1, pane.name()), style)]
    });
    frame.render_widget(Line::from_iter(names), tabs);
    let shown = view.pane.table(snapshot, view.sort());
    let mut lines = rows(&shown, area.width, Some(view.sort()));
    if shown.rows.is_empty() {
        lines.push(Line::styled("  nothing in the time since the last look", FAINT));
    }
    frame.render_widget(Paragraph::new(lines), table);
}

/// The lines of a table: its headings, and its rows. Texts are cut where the width does not do.
fn rows(table: &Table, width: u16, sort: Option<usize>) -> Vec<Line<'static>> {
    /// So much of a text is left at least.
    const TEXT_MIN: usize = 8;
    let mut widths = table.widths();
    let all = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    // The widest text gives way, a column at a time.
    while all(&widths) > usize::from(width) {
        let texts = (0..widths.len()).filter(|column| !table.is_number(*column) && widths[*column] > TEXT_MIN);
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
