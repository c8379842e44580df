//! The outlines of characters. A picture therefore needs no font of the machine that draws it.
//!
//! `glyphs.txt` has a line for each character: the character, its advance, and its outline. The unit is 1/2048 of the size, and y goes
//! upwards. The commands are M(ove) x y, L(ine) x y, Q(uadratic curve) x1 y1 x y, and Z (close). The outlines are those of DejaVu Sans;
//! its licence is beside the file.

const GLYPHS: &str = include_str!("glyphs.txt");
const UNITS: f64 = 2_048.0;

/// A part of an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stroke {
    Move([f64; 2]),
    Line([f64; 2]),
    Curve([f64; 4]),
    Close,
}

/// Returns the advance and the outline of a character. An unknown character has those of a question mark.
fn glyph(character: char) -> (f64, &'static str) {
    let of = |character| GLYPHS.lines().find_map(|line| line.strip_prefix::<char>(character));
    let line = of(character).or_else(|| of('?')).expect("INVARIANT: there is a question mark");
    let (advance, outline) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
    (number(advance), outline)
}

fn number(text: &str) -> f64 {
    text.parse().expect("INVARIANT: glyphs.txt has numbers there")
}

/// Returns the width of `text` at this size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|character| glyph(character).0 * size / UNITS).sum()
}

/// Returns the outlines of `text` at this size. The text begins at (x, y), and y goes downwards.
pub fn outline(text: &str, size: f64, x: f64, y: f64) -> Vec<Stroke> {
    let scale = size / UNITS;
    let mut strokes = Vec::new();
    let mut left = x;
    for character in text.chars() {
        let (advance, outline) = glyph(character);
        let mut words = outline.split(' ');
        while let Some(word) = words.next() {
            let mut next = |of: &str| (left + number(of) * scale, y - number(words.next().unwrap_or("0")) * scale);
            match (word.get(..1), word.get(1..)) {
                (Some("M"), Some(of)) => strokes.push(Stroke::Move(next(of).into())),
                (Some("L"), Some(of)) => strokes.push(Stroke::Line(next(of).into())),
                (Some("Q"), Some(of)) => {
                    let (x1, y1) = next(of);
                    let of = words.next().unwrap_or("0");
                    let (x, y) = (left + number(of) * scale, y - number(words.next().unwrap_or("0")) * scale);
                    strokes.push(Stroke::Curve([x1, y1, x, y]));
                }
                (Some("Z"), _) => strokes.push(Stroke::Close),
                _ => {}
            }
        }
        left += advance * scale;
    }
    strokes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_are_at_their_place() {
        assert_eq!(width("!", 2_048.0), 821.0);
        assert_eq!(width("!!", 1_024.0), 821.0);
        let [Stroke::Move(first), Stroke::Line(second), ..] = outline("!", 2_048.0, 10.0, 3_000.0)[..] else {
            panic!("{:?}", outline("!", 2_048.0, 0.0, 0.0))
        };
        assert_eq!((first, second), ([319.0, 2_746.0], [522.0, 2_746.0]));
        let twice = outline("!!", 2_048.0, 10.0, 3_000.0);
        assert_eq!(twice[twice.len() / 2], Stroke::Move([319.0 + 821.0, 2_746.0]));
        assert!(outline("o", 10.0, 0.0, 0.0).iter().any(|stroke| matches!(stroke, Stroke::Curve(_))));
        assert_eq!(outline(" ", 10.0, 0.0, 0.0), []);
    }

    #[test]
    fn an_unknown_character_is_a_question_mark() {
        assert_eq!(outline("\u{2603}", 10.0, 0.0, 0.0), outline("?", 10.0, 0.0, 0.0));
    }
}
