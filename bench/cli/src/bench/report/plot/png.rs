//! A drawing as a PNG, on a light ground.

use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Stroke as Pen, StrokeDash, Transform};

use super::drawing::{Anchor, Drawing, Shape, Tone};
use super::glyphs::{self, Stroke};

/// Pixels of the PNG per pixel of the drawing.
const SCALE: f32 = 2.0;

/// Returns the bytes of a PNG.
///
/// # Errors
///
/// Fails if the drawing's size is wrong, or with the error of the encoder.
pub fn file(drawing: &Drawing) -> Result<Vec<u8>, String> {
    let pixels = |length: f64| (length as f32 * SCALE).ceil() as u32;
    let (width, height) = (pixels(drawing.width), pixels(drawing.height));
    let picture = Pixmap::new(width, height).ok_or_else(|| format!("a picture of {width} by {height} pixels"))?;
    let mut picture = Canvas(picture);
    picture.0.fill(colour(Tone::Ground));
    for shape in &drawing.shapes {
        picture.draw(shape);
    }
    picture.0.encode_png().map_err(|error| error.to_string())
}

fn colour(tone: Tone) -> Color {
    let [_, red, green, blue] = tone.light().to_be_bytes();
    Color::from_rgba8(red, green, blue, 255)
}

fn paint(tone: Tone) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(colour(tone));
    paint
}

struct Canvas(Pixmap);

impl Canvas {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Bar { x, y, width, height, tone, .. } => {
                let [x, y, width, height] = [x, y, width, height].map(|&length| length as f32);
                // A line without width is invisible.
                if let Some(rect) = Rect::from_xywh(x, y, width, height) {
                    self.fill(Some(PathBuilder::from_rect(rect)), *tone);
                }
            }
            Shape::Line { points, tone, width, dashed } => {
                let mut path = PathBuilder::new();
                for (at, (x, y)) in points.iter().enumerate() {
                    let (x, y) = (*x as f32, *y as f32);
                    if at == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
                }
                self.stroke(path.finish(), *tone, *width as f32, *dashed);
            }
            Shape::Dot { x, y, radius, tone, hollow, .. } => {
                let circle = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32);
                self.fill(circle.clone(), if *hollow { Tone::Ground } else { *tone });
                if *hollow {
                    self.stroke(circle, *tone, 1.5, false);
                }
            }
            Shape::Text { x, y, size, anchor, tone, text } => {
                let width = glyphs::width(text, *size);
                let left = match anchor {
                    Anchor::Start => *x,
                    Anchor::Middle => x - width / 2.0,
                    Anchor::End => x - width,
                };
                self.fill(path(&glyphs::outline(text, *size, left, *y)), *tone);
            }
        }
    }

    fn fill(&mut self, path: Option<Path>, tone: Tone) {
        if let Some(path) = path {
            self.0.fill_path(&path, &paint(tone), FillRule::Winding, Transform::from_scale(SCALE, SCALE), None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, tone: Tone, width: f32, dashed: bool) {
        let dash = if dashed { StrokeDash::new(vec![4.0, 3.0], 0.0) } else { None };
        let pen = Pen { width, dash, ..Pen::default() };
        if let Some(path) = path {
            self.0.stroke_path(&path, &paint(tone), &pen, Transform::from_scale(SCALE, SCALE), None);
        }
    }
}

/// Returns the outlines, or `None` if there are none, as for a space.
fn path(strokes: &[Stroke]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for stroke in strokes {
        match stroke {
            Stroke::Move(to) => path.move_to(to[0] as f32, to[1] as f32),
            Stroke::Line(to) => path.line_to(to[0] as f32, to[1] as f32),
            Stroke::Curve([x1, y1, x, y]) => path.quad_to(*x1 as f32, *y1 as f32, *x as f32, *y as f32),
            Stroke::Close => path.close(),
        }
    }
    path.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the colours of a drawing's pixels, each once.
    fn colours(drawing: &Drawing) -> Vec<[u8; 3]> {
        let picture = Pixmap::decode_png(&file(drawing).unwrap()).unwrap();
        let pixels = picture.pixels().iter().map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]);
        let mut colours: Vec<_> = pixels.collect();
        colours.sort_unstable();
        colours.dedup();
        colours
    }

    #[test]
    fn every_shape_leaves_its_colour() {
        let empty = || Drawing { title: String::new(), width: 40.0, height: 20.0, shapes: Vec::new() };
        assert_eq!(colours(&empty()), [[255; 3]]);
        let [_, red, green, blue] = Tone::Ours.light().to_be_bytes();
        let shapes: [fn(&mut Drawing); 5] = [
            |drawing| drawing.bar((5.0, 5.0), (20.0, 10.0), Tone::Ours, ""),
            |drawing| drawing.line(&[(5.0, 10.0), (35.0, 10.0)], Tone::Ours, 4.0),
            |drawing| drawing.dot((10.0, 10.0), 5.0, Tone::Ours, false, ""),
            |drawing| drawing.dot((10.0, 10.0), 5.0, Tone::Ours, true, ""),
            |drawing| drawing.text_of_size(20.0, (5.0, 18.0), Anchor::Start, Tone::Ours, "H"),
        ];
        for (number, shape) in shapes.into_iter().enumerate() {
            let mut drawing = empty();
            shape(&mut drawing);
            assert!(colours(&drawing).contains(&[red, green, blue]), "shape {number}");
        }
    }

    #[test]
    fn text_is_where_its_anchor_says() {
        let ink = |anchor| {
            let mut drawing = Drawing { title: String::new(), width: 60.0, height: 20.0, shapes: Vec::new() };
            drawing.text_of_size(20.0, (30.0, 18.0), anchor, Tone::Text, "H");
            let picture = Pixmap::decode_png(&file(&drawing).unwrap()).unwrap();
            let dark = |x| (0..picture.height()).any(|y| picture.pixel(x, y).is_some_and(|pixel| pixel.red() < 100));
            let left = (0..picture.width()).find(|&x| dark(x)).unwrap();
            let right = (0..picture.width()).rfind(|&x| dark(x)).unwrap();
            (left >= 60, right <= 60)
        };
        assert_eq!(
            [Anchor::Start, Anchor::Middle, Anchor::End].map(ink),
            [(true, false), (false, false), (false, true)]
        );
    }
}
