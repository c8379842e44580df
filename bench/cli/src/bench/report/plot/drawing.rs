//! A drawing: shapes in the order in which they cover each other. It becomes an SVG or a PNG.

/// The purpose of a shape, which decides its colour. Colour-blind readers can tell the hues apart, because they are from Okabe and
/// Ito's palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Ground,
    Text,
    Muted,
    Grid,
    Ours,
    Other,
    Third,
}

impl Tone {
    pub const ALL: [Self; 7] =
        [Self::Ground, Self::Text, Self::Muted, Self::Grid, Self::Ours, Self::Other, Self::Third];

    /// Returns the tone's class in an SVG.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ground => "ground",
            Self::Text => "text",
            Self::Muted => "muted",
            Self::Grid => "grid",
            Self::Ours => "ours",
            Self::Other => "other",
            Self::Third => "third",
        }
    }

    /// Returns the tone's colour on a light ground.
    pub fn light(self) -> u32 {
        match self {
            Self::Ground => 0xff_ff_ff,
            Self::Text => 0x1b_1f_24,
            Self::Muted => 0x5b_65_70,
            Self::Grid => 0xdd_e2_e7,
            Self::Ours => 0x00_72_b2,
            Self::Other => 0xd5_5e_00,
            Self::Third => 0x00_9e_73,
        }
    }

    /// Returns the tone's colour on a dark ground.
    pub fn dark(self) -> u32 {
        match self {
            Self::Ground => 0x14_18_1d,
            Self::Text => 0xe8_ea_ed,
            Self::Muted => 0xa3_ac_b5,
            Self::Grid => 0x33_3b_44,
            Self::Ours => 0x56_b4_e9,
            Self::Other => 0xe6_9f_00,
            Self::Third => 0x2f_c7_9a,
        }
    }
}

/// The point of a text that is at the text's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A shape; lengths are in pixels, and y goes downwards.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Bar {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        tone: Tone,
        tip: String,
    },
    Line {
        points: Vec<(f64, f64)>,
        tone: Tone,
        width: f64,
        dashed: bool,
    },
    /// A hollow dot is filled with the ground's colour.
    Dot {
        x: f64,
        y: f64,
        radius: f64,
        tone: Tone,
        hollow: bool,
        tip: String,
    },
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        tone: Tone,
        text: String,
    },
}

/// The size of ordinary text.
pub const TEXT: f64 = 12.0;

/// A drawing with its title, which is also its text for readers who cannot see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub title: String,
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Drawing {
    /// Returns a drawing with its title at the top.
    pub fn new(title: &str, width: f64) -> Self {
        let mut drawing = Self { title: title.to_owned(), width, height: 0.0, shapes: Vec::new() };
        drawing.text_of_size(16.0, (16.0, 28.0), Anchor::Start, Tone::Text, title);
        drawing
    }

    pub fn text(&mut self, place: (f64, f64), anchor: Anchor, tone: Tone, text: &str) {
        self.text_of_size(TEXT, place, anchor, tone, text);
    }

    pub fn text_of_size(&mut self, size: f64, (x, y): (f64, f64), anchor: Anchor, tone: Tone, text: &str) {
        self.shapes.push(Shape::Text { x, y, size, anchor, tone, text: text.to_owned() });
    }

    pub fn line(&mut self, points: &[(f64, f64)], tone: Tone, width: f64) {
        self.shapes.push(Shape::Line { points: points.to_vec(), tone, width, dashed: false });
    }

    pub fn dashed(&mut self, points: &[(f64, f64)], tone: Tone, width: f64) {
        self.shapes.push(Shape::Line { points: points.to_vec(), tone, width, dashed: true });
    }

    pub fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), tone: Tone, tip: &str) {
        self.shapes.push(Shape::Bar { x, y, width, height, tone, tip: tip.to_owned() });
    }

    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, tone: Tone, hollow: bool, tip: &str) {
        self.shapes.push(Shape::Dot { x, y, radius, tone, hollow, tip: tip.to_owned() });
    }
}
