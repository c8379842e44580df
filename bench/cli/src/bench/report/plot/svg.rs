//! A drawing as an SVG.

use std::fmt::Write;

use super::drawing::{Anchor, Drawing, Shape, Tone};

/// Returns the colours of each tone on a light and on a dark ground, for one SVG or for a page with several.
pub fn style() -> String {
    let colours =
        |of: fn(Tone) -> u32| Tone::ALL.map(|tone| format!("--{}: #{:06x};", tone.name(), of(tone))).join(" ");
    let (light, dark) = (colours(Tone::light), colours(Tone::dark));
    let mut style = format!(":root {{ color-scheme: light dark; {light} }}\n");
    let _ = writeln!(style, "@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}");
    for name in Tone::ALL.map(Tone::name) {
        let _ = writeln!(style, ".{name} {{ fill: var(--{name}); }}");
        let _ = writeln!(style, ".line.{name} {{ fill: none; stroke: var(--{name}); }}");
        let _ = writeln!(style, ".hollow.{name} {{ fill: var(--ground); stroke: var(--{name}); }}");
    }
    style
}

/// Returns a file of its own, with its colours.
pub fn file(drawing: &Drawing) -> String {
    let ground = "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n";
    picture(drawing, &format!("<style>\n{}</style>\n{ground}", style()))
}

/// Returns a part of a page that has the [`style`].
pub fn inline(drawing: &Drawing) -> String {
    picture(drawing, "")
}

fn picture(drawing: &Drawing, before: &str) -> String {
    let Drawing { title, width, height, shapes } = drawing;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n{before}",
        escaped(title)
    );
    for shape in shapes {
        draw(&mut svg, shape);
    }
    svg + "</svg>\n"
}

fn draw(svg: &mut String, shape: &Shape) {
    let tip = |tip: &str| if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) };
    // Writing to a string never fails.
    let _ = match shape {
        Shape::Bar { x, y, width, height, tone, tip: words } => writeln!(
            svg,
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">{}</rect>",
            tone.name(),
            tip(words)
        ),
        Shape::Line { points, tone, width, dashed } => {
            let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let dashes = if *dashed { " stroke-dasharray=\"4 3\"" } else { "" };
            let (tone, points) = (tone.name(), points.join(" "));
            writeln!(svg, "<polyline class=\"line {tone}\" points=\"{points}\" stroke-width=\"{width}\"{dashes}/>")
        }
        Shape::Dot { x, y, radius, tone, hollow, tip: words } => {
            let class = if *hollow { format!("hollow {}", tone.name()) } else { tone.name().to_owned() };
            let stroke = if *hollow { " stroke-width=\"1.5\"" } else { "" };
            let tip = tip(words);
            writeln!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"{stroke}>{tip}</circle>")
        }
        Shape::Text { x, y, size, anchor, tone, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (tone, text) = (tone.name(), escaped(text));
            writeln!(
                svg,
                "<text class=\"{tone}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"
            )
        }
    };
}

/// Escapes text for XML and HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut drawing = Drawing::new("a < b & \"c\"", 100.0);
        drawing.dot((1.0, 2.0), 3.0, Tone::Ours, true, "x > y");
        let svg = file(&drawing);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let find = |name| document.descendants().find(|node| node.has_tag_name(name)).unwrap();
        assert_eq!(find("text").text(), Some("a < b & \"c\""));
        assert_eq!(document.root_element().attribute("aria-label"), Some("a < b & \"c\""));
        assert_eq!(find("title").text(), Some("x > y"));
        assert_eq!(find("circle").attribute("class"), Some("hollow ours"));
    }
}
