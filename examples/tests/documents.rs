//! The documents name only what exists, and the book has a chapter, a test and a link for each of its parts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "GUARANTEES.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "bench/SAVINA.md",
    "bench/peers/README.md",
];

/// The chapters of the book.
fn chapters() -> Vec<String> {
    let entries =
        fs::read_dir(root().join(BOOK)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut chapters: Vec<_> = entries.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    chapters.sort();
    chapters.into_iter().map(|name| format!("{BOOK}/{name}")).collect()
}

/// The pages of the guarantees. `guarantees.rs` compares them with the tests.
fn guarantees() -> Vec<String> {
    let entries = fs::read_dir(root().join("guarantees")).unwrap();
    let mut pages: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    pages.into_iter().map(|name| format!("guarantees/{name}")).collect()
}

/// All documents with links.
fn documents() -> Vec<String> {
    let summary = format!("{BOOK}/SUMMARY.md");
    DOCUMENTS.map(str::to_owned).into_iter().chain(guarantees()).chain(chapters()).chain([summary]).collect()
}

/// The folder with the chapters of the book.
const BOOK: &str = "guide/src";

/// Begins a link from the book to a file or a folder of the repository. The pages of the book are read outside of it, too.
const REPOSITORY: [&str; 2] =
    ["https://github.com/playhouse-rs/playhouse/blob/main/", "https://github.com/playhouse-rs/playhouse/tree/main/"];

/// The largest README.
const README_BYTES_MAX: usize = 8 * 1024;

/// The longest ARCHITECTURE.md. Details belong beside the code, and rejected designs in `guide/src/decisions.md`.
const ARCHITECTURE_WORDS_MAX: usize = 4_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the parts of `text` between `open` and `close`.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split_once(close)).map(|(part, _)| part).collect()
}

/// Returns the parts of a document that are code within a line.
fn code(document: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for (number, part) in document.split("```").enumerate() {
        if number % 2 == 0 {
            let odd = part.split('`').enumerate().filter(|(number, _)| number % 2 == 1);
            parts.extend(odd.map(|(_, code)| code.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    parts
}

/// Returns a document without its blocks of code.
fn prose(document: &str) -> String {
    document.split("```").step_by(2).collect()
}

/// Returns the name of a heading in a link.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_somewhere() {
    let headings = |path: &Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = prose(&text);
        text.lines().filter(|line| line.starts_with('#')).map(|line| slug(line.trim_start_matches('#'))).collect()
    };
    for document in documents() {
        let path = root().join(&document);
        for link in between(&prose(&read(&document)), "](", ")") {
            let in_repository = REPOSITORY.iter().find_map(|repository| link.strip_prefix(repository));
            if link.starts_with("https://") && in_repository.is_none() {
                continue;
            }
            let (folder, link) = in_repository.map_or((path.parent().unwrap().to_owned(), link), |link| (root(), link));
            let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            assert!(target.exists(), "{document}: {link} is not there");
            // Relative paths out of the book lead nowhere once it is a site.
            let leaves_the_book = document.starts_with(BOOK) && in_repository.is_none() && link.starts_with("..");
            assert!(!leaves_the_book, "{document}: {link} leaves the book: begin it with {}", REPOSITORY[0]);
            let is_there = heading.is_none_or(|heading| headings(&target).iter().any(|known| known == heading));
            assert!(is_there, "{document}: no heading for {link}");
        }
    }
}

#[test]
fn paths_exist() {
    let folders = ["crates/", "bench/", "examples/", "guide/", "scenarios/", ".ci/"];
    for document in documents() {
        for part in code(&read(&document)) {
            let is_path = folders.iter().any(|folder| part.starts_with(folder)) && !part.contains(['*', '{', ' ']);
            let path = part.split("::").next().unwrap_or(&part);
            assert!(!is_path || root().join(path).exists(), "{document}: {part} is not there");
        }
    }
}

/// `examples/src/lib.rs` includes the programs of a chapter, which are compiled and run.
#[test]
fn each_program_of_the_book_is_tested() {
    let tested = read("examples/src/lib.rs");
    for chapter in chapters() {
        let has_programs = read(&chapter).lines().any(|line| line.starts_with("```rust"));
        let is_tested = tested.contains(&format!("../{chapter}\""));
        assert!(is_tested || !has_programs, "the programs of {chapter} are not tested");
    }
    assert!(tested.contains("../README.md\""), "the programs of README.md are not tested");
}

/// The pages that the packages show.
fn pages_of_packages() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = folders.map(|folder| format!("crates/{folder}/README.md"));
    pages.filter(|page| root().join(page).exists()).collect()
}

/// Returns the lines of the document's programs that mdBook and rustdoc hide.
fn hidden(document: &str) -> Vec<&str> {
    let blocks = document.split("```").skip(1).step_by(2);
    let programs =
        blocks.filter(|block| block.lines().next().is_some_and(|info| info.split(',').any(|word| word == "rust")));
    programs
        .flat_map(str::lines)
        .filter(|line| {
            let line = line.trim_start();
            line == "#" || line.starts_with("# ")
        })
        .collect()
}

/// A reader may copy a program from the file of its page. That file shows hidden lines, which do not compile.
#[test]
fn no_program_has_hidden_lines() {
    for document in documents().into_iter().chain(pages_of_packages()) {
        let text = read(&document);
        let hidden = hidden(&text);
        assert!(hidden.is_empty(), "{document}: show these lines: {hidden:#?}");
    }
}

/// The first command of a reader. No version is in a registry yet.
const FROM_A_CLONE: &str = "cargo add --path ../playhouse/crates/playhouse\n";

#[test]
fn the_first_steps_depend_on_a_clone() {
    assert!(root().join("crates/playhouse/Cargo.toml").exists(), "{FROM_A_CLONE} leads nowhere");
    for document in ["README.md", "guide/src/install.md", "guide/src/chat-server.md"] {
        let text = read(document);
        let (_, after) = text.split_once(FROM_A_CLONE).unwrap_or_else(|| panic!("{document} lacks {FROM_A_CLONE}"));
        assert!(
            after.contains("`../playhouse` is a clone of <https://github.com/playhouse-rs/playhouse>"),
            "{document}"
        );
    }
    for document in documents().into_iter().filter(|document| document == "README.md" || document.starts_with(BOOK)) {
        let text = read(&document);
        let mut added = text.split("cargo add playhouse").skip(1);
        // With features, the command changes the dependency that the manifest has.
        assert!(added.all(|rest| rest.starts_with(" --features ")), "{document}: no registry has playhouse yet");
    }
}

/// Without its features, the reference has no theaters.
#[test]
fn the_reference_is_built_with_all_features() {
    for document in ["README.md", "guide/src/introduction.md"] {
        let text = read(document);
        let commands: Vec<&str> = text.split('`').filter(|code| code.starts_with("cargo doc ")).collect();
        assert_eq!(commands, ["cargo doc --open -p playhouse --all-features"], "{document}");
    }
}

#[test]
fn each_chapter_is_in_the_summary_once() {
    let summary = read(&format!("{BOOK}/SUMMARY.md"));
    let mut listed: Vec<_> = between(&summary, "](", ")").into_iter().map(|link| format!("{BOOK}/{link}")).collect();
    listed.sort();
    assert_eq!(listed, chapters());
}

#[test]
fn each_chapter_begins_with_a_heading() {
    for chapter in chapters() {
        assert!(read(&chapter).starts_with("# "), "{chapter} has no title");
    }
}

#[test]
fn each_drawing_of_the_book_is_shown_and_described() {
    let texts: String = chapters().iter().map(|chapter| read(chapter)).collect();
    for entry in fs::read_dir(root().join(BOOK).join("images")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(texts.contains(&format!("](images/{name})")), "no chapter shows {name}");
        let drawing = read(&format!("{BOOK}/images/{name}"));
        assert!(drawing.contains("<title>"), "{name} has no title for those that cannot see it");
    }
    assert!(!texts.contains("![]("), "a drawing has no description");
}

#[test]
fn the_readme_is_short() {
    let bytes = read("README.md").len();
    assert!(bytes <= README_BYTES_MAX, "{bytes} bytes: at most {README_BYTES_MAX}");
}

#[test]
fn the_architecture_is_short() {
    let words = read("ARCHITECTURE.md").split_whitespace().count();
    assert!(words <= ARCHITECTURE_WORDS_MAX, "{words} words: at most {ARCHITECTURE_WORDS_MAX}");
}

/// Returns the sentences of a document: its paragraphs, rows and headings, without code.
fn sentences(document: &str) -> Vec<String> {
    // Two backticks enclose code that contains backticks.
    let text = ["``", "`"].iter().fold(prose(document), |text, fence| {
        let outside: Vec<_> = text.split(fence).step_by(2).collect();
        outside.join("code")
    });
    let mut parts = vec![String::new()];
    for line in text.lines().map(str::trim) {
        let begins = line.is_empty() || line.starts_with(['|', '#', '-', '*']);
        if begins {
            parts.push(String::new());
        }
        let part = parts.last_mut().unwrap();
        part.push_str(line.trim_start_matches(['#', '-', '*', ' ']));
        part.push(' ');
    }
    let cells = parts.iter().flat_map(|part| part.split('|'));
    let sentences = cells.flat_map(|cell| cell.split_inclusive(['.', '?', '!', ':']).collect::<Vec<_>>());
    // A dot within a number or a name ends no sentence. The text behind such a dot begins with a small letter or a
    // digit.
    sentences.map(|sentence| sentence.trim().to_owned()).filter(|sentence| !sentence.is_empty()).collect()
}

/// Rules for sentences: a subject is a named thing, and a cause is a "because".
#[test]
fn the_documents_and_the_book_name_their_subjects() {
    let openings = ["What", "Who", "Whoever", "Where", "So", "That"];
    let pronouns = ["who", "whom", "whoever"];
    let others = ["README.md", "ARCHITECTURE.md", "GUARANTEES.md", "CONTRIBUTING.md"].map(str::to_owned);
    for document in chapters().into_iter().chain(guarantees()).chain(others) {
        for sentence in sentences(&read(&document)) {
            let mut words = sentence.split(|c: char| !c.is_alphanumeric());
            let opening = words.next().unwrap_or_default();
            assert!(!openings.contains(&opening), "{document}: {opening:?} opens {sentence:?}");
            let pronoun = words.find(|word| pronouns.contains(&word.to_lowercase().as_str()));
            assert!(pronoun.is_none(), "{document}: {pronoun:?} in {sentence:?}");
        }
    }
}

// -- error texts --------------------------------------------------------------------------------------------------------

/// The page that lists the error texts.
const ERRORS: &str = "guide/src/troubleshooting.md";

/// Returns the pieces of an error text of the page. The text has `…` between them, which stands for any text.
fn pieces(text: &str) -> Vec<&str> {
    text.split('…').map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

/// Returns whether an error has the pieces of this text, in their order, and begins with the first one.
fn is_match(error: &str, text: &str) -> bool {
    let mut rest = error;
    for (number, piece) in pieces(text).into_iter().enumerate() {
        let Some(at) = rest.find(piece) else { return false };
        if number == 0 && at != 0 && !text.starts_with('…') {
            return false;
        }
        rest = &rest[at + piece.len()..];
    }
    true
}

/// Returns the error texts that begin the rows of the tables in this part of the page.
fn error_texts(part: &str) -> Vec<String> {
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cell = row[2..].split(" | ").next().unwrap().trim();
        // Two backticks enclose a text that contains backticks.
        let fence = if cell.starts_with("``") { "``" } else { "`" };
        let text = cell.strip_prefix(fence).and_then(|text| text.strip_suffix(fence));
        text.unwrap_or_else(|| panic!("{ERRORS}: no error text in {row}")).trim().replace("\\|", "|")
    })
    .collect()
}

/// Returns a source file whose literals have no breaks.
fn unbroken(source: &str) -> String {
    let mut lines = String::new();
    for line in source.lines().map(str::trim_start) {
        match line.strip_suffix('\\') {
            Some(begun) => lines.push_str(begun),
            None => {
                lines.push_str(line);
                lines.push('\n');
            }
        }
    }
    lines
}

/// Returns the text of a source file as a program prints it: without breaks in literals, and with their quotes.
fn printed(source: &str) -> String {
    unbroken(source).replace("\\\"", "\"")
}

/// Returns the literal that begins `code`, behind a call of `format!`, as a program prints it. Values are `…`.
fn literal(code: &str) -> Option<String> {
    let code = code.trim_start_matches('&');
    let code = code.strip_prefix("format!(").map_or(code, str::trim_start);
    let (mut text, mut is_value) = (String::new(), false);
    let mut characters = code.strip_prefix('"')?.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '{' => (is_value, text) = (true, text + "…"),
            '}' => is_value = false,
            _ if is_value => {}
            '\\' => text.push(characters.next()?),
            character => text.push(character),
        }
    }
}

/// Returns the text of all files with this ending, in this folder and its folders.
fn sources(folder: &Path, ending: &str) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// Returns the sources of the libraries whose errors a program may get.
fn sources_of_libraries() -> String {
    let libraries = ["executor", "actor", "theater", "toolbox", "playhouse", "testkit", "sqlite", "postgres", "etcd"];
    libraries.map(|library| sources(&root().join("crates").join(library).join("src"), ".rs")).concat()
}

/// Returns the sources of the program `playhouse`.
fn sources_of_the_program() -> String {
    ["cli", "console"].map(|package| sources(&root().join("crates").join(package).join("src"), ".rs")).concat()
}

/// Returns the parts of the page: the errors of the libraries, and the recorded ones of the compiler. The part behind them
/// has errors of the compiler's own, which change with its versions.
fn parts_of_errors(page: &str) -> (&str, &str) {
    let (libraries, compiler) =
        page.split_once("\n## Compile errors").expect("the page has the heading \"Compile errors\"");
    (libraries, compiler.split("\n## ").next().unwrap_or_default())
}

#[test]
fn each_error_text_of_the_book_is_one_of_the_crates() {
    let page = read(ERRORS);
    let (libraries, _) = parts_of_errors(&page);
    let sources = printed(&(sources_of_libraries() + &sources_of_the_program()));
    let texts = error_texts(libraries);
    assert!(texts.len() > 50, "{}", texts.len());
    let pieces = texts.iter().flat_map(|text| pieces(text));
    let missing: Vec<&str> = pieces.filter(|piece| !sources.contains(*piece)).collect();
    assert!(missing.is_empty(), "{ERRORS}: no crate says {missing:#?}");
}

/// These calls begin with the reason of a failure: of a command of the program, or of a theater that refuses or is refused.
const FAILURES: [&str; 7] =
    ["fail(BAD_INPUT,", "fail(FAILED,", "Failure::new(", "failure(", "not_member(", "wrong(", "io::Error::other("];

/// The end of this file has the reasons of TLS, from this function on.
const TLS: (&str, &str) = ("crates/theater/src/transport/tls.rs", "\nfn words(");

#[test]
fn each_reason_of_a_failure_is_in_the_book() {
    let page = read(ERRORS);
    let texts = error_texts(parts_of_errors(&page).0).into_iter();
    // A text such as `…: …` matches most reasons.
    let is_specific = |text: &String| !text.starts_with('…') || text.chars().filter(|c| c.is_alphabetic()).count() > 10;
    let texts: Vec<String> = texts.filter(is_specific).collect();
    let failing = unbroken(&(sources_of_the_program() + &sources(&root().join("crates/theater/src/node"), ".rs")));
    let failures =
        FAILURES.iter().flat_map(|call| failing.split(call).skip(1).map(str::trim_start).filter_map(literal));
    let (file, words) = TLS;
    let tls = unbroken(&read(file));
    let (_, tls) = tls.split_once(words).unwrap_or_else(|| panic!("{file} has no {words}"));
    let of_tls = tls.split(['(', '>', '\n']).map(str::trim_start).filter_map(literal);
    let reasons: BTreeSet<String> = failures.chain(of_tls).collect();
    assert!(reasons.len() > 40, "{reasons:#?}");
    let missing: Vec<_> = reasons.iter().filter(|reason| !texts.iter().any(|text| is_match(reason, text))).collect();
    assert!(missing.is_empty(), "not in {ERRORS}: {missing:#?}");
}

#[test]
fn each_variant_of_an_error_is_in_the_book() {
    let page = read(ERRORS);
    let sources = sources_of_libraries();
    let errors = [
        "AskError",
        "MigrateError",
        "TheaterError",
        "FindError",
        "NameError",
        "DurableError",
        "StoreError",
        "JobError",
        "TryRunError",
        "JoinError",
    ];
    for error in errors {
        let start = sources.find(&format!("pub enum {error}")).unwrap_or_else(|| panic!("no crate has {error}"));
        let body = between(&sources[start..], "{\n", "\n}")[0];
        let variants = body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
        let names = variants.filter_map(|line| line.trim().split(['(', '{', ',', ' ']).next());
        for name in names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())) {
            assert!(page.contains(&format!("`{error}::{name}`")), "{error}::{name} is not in {ERRORS}");
        }
    }
}

/// The compiler's output for the cases that must not compile has the errors of the macros. Errors with a code are the
/// compiler's own.
#[test]
fn each_error_of_the_macros_is_in_the_book() {
    let page = read(ERRORS);
    let (_, compiler) = parts_of_errors(&page);
    let texts = error_texts(compiler);
    let recorded = printed(&sources(&root().join("crates/macros/tests/ui/fail"), ".stderr"));
    let errors: Vec<&str> = recorded.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert!(errors.len() > 100, "{}", errors.len());
    let missing: Vec<_> = errors.iter().filter(|error| !texts.iter().any(|text| is_match(error, text))).collect();
    assert!(missing.is_empty(), "not in {ERRORS}: {missing:#?}");
    let others: Vec<&str> = recorded.lines().filter(|line| line.starts_with("error")).collect();
    let unused: Vec<_> = texts
        .iter()
        .filter(|text| !others.iter().any(|error| pieces(text).iter().all(|piece| error.contains(piece))))
        .collect();
    assert!(unused.is_empty(), "no case of the macros' tests has these: {unused:#?}");
}

/// Types of the reference whose pages need no example, because only the macros name them, and one whose name a macro of its crate writes.
const WITHOUT_EXAMPLES: [&str; 8] =
    ["AsyncMode", "DeferredMode", "Handles", "Repeated", "Spawns", "SyncMode", "Outcome", "Migration"];

#[test]
fn each_public_type_has_an_example() {
    let mut with_examples = BTreeSet::new();
    for library in ["executor", "actor", "theater", "toolbox", "testkit", "playhouse", "sqlite", "postgres", "etcd"] {
        let sources = sources(&root().join("crates").join(library).join("src"), ".rs");
        let mut comment = String::new();
        for line in sources.lines().map(str::trim_start) {
            let item = ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|kind| line.strip_prefix(kind));
            if line.starts_with("///") {
                comment.push_str(line);
            } else if let Some(rest) = item {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                if comment.contains("```") {
                    with_examples.insert(name.to_owned());
                }
                comment.clear();
            } else if line.is_empty() || line.ends_with('}') || line.ends_with(';') {
                comment.clear();
            }
        }
    }
    let api = read(".ci/public-api.txt");
    let pages = api.lines().filter(|line| !line.contains(' ')).filter_map(|page| page.rsplit('/').next());
    let types = pages.filter_map(|page| ["struct.", "enum.", "trait."].iter().find_map(|kind| page.strip_prefix(kind)));
    let missing: BTreeSet<&str> =
        types.filter(|name| !with_examples.contains(*name) && !WITHOUT_EXAMPLES.contains(name)).collect();
    assert!(missing.is_empty(), "the pages of these types have no example: {missing:?}");
}

/// A program depends on `playhouse`, whose reference shows these examples.
#[test]
fn examples_of_the_reference_name_no_crate_behind_playhouse() {
    for library in ["actor", "theater", "toolbox"] {
        let sources = sources(&root().join("crates").join(library).join("src"), ".rs");
        let comments = sources.lines().filter_map(|line| line.trim_start().strip_prefix("///"));
        let named: Vec<&str> = comments.filter(|line| line.starts_with(" use playhouse_")).collect();
        assert!(named.is_empty(), "hide these lines with `#`: {named:#?}");
    }
}

#[test]
fn each_module_is_in_the_architecture() {
    let text = read("ARCHITECTURE.md");
    for folder in
        ["crates/executor/src", "crates/actor/src", "crates/theater/src", "crates/toolbox/src", "crates/testkit/src"]
    {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            assert!(name == "lib.rs" || text.contains(&format!("]({path})")), "{path} is not in ARCHITECTURE.md");
        }
    }
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let path = format!("crates/{}", folder.unwrap().file_name().into_string().unwrap());
        assert!(text.contains(&path), "{path} is not in ARCHITECTURE.md");
    }
}

/// A program with `test = false` in `examples/Cargo.toml` gets no test program, so a test in it would never run.
#[test]
fn programs_without_a_test_program_have_no_tests() {
    let manifest = read("examples/Cargo.toml");
    for entry in fs::read_dir(root().join("examples/src/bin")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let has_program = !manifest.contains(&format!("name = \"{name}\"\ntest = false"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            has_program || !text.contains("::test]") && !text.contains("[test]"),
            "{}: its tests never run: remove `test = false` from examples/Cargo.toml",
            path.display()
        );
    }
}

#[test]
fn each_program_of_savina_is_on_its_page() {
    let page = read("bench/SAVINA.md");
    let rows = page.lines().filter(|line| line.starts_with("| `savina-")).count();
    assert_eq!(rows, 30);
    for entry in fs::read_dir(root().join("bench/src/savina")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "mod.rs" || page.contains(&format!("](src/savina/{name})")), "{name} is not on the page");
    }
}

#[test]
fn the_checks_notice() {
    assert_eq!(slug(" What is not there yet"), "what-is-not-there-yet");
    assert_eq!(prose("a\n```rust\nb\n```\nc"), "a\n\nc");
    assert_eq!(sentences("# A b\nC `d. e`\nf. G\n| h | i |\n"), ["A b C code f.", "G", "h", "i"]);
    assert_eq!(pieces("the name … is taken by …"), ["the name", "is taken by"]);
    assert!(is_match("the name `a` is taken by `b`", "the name … is taken") && is_match("a b", "… b"));
    assert!(!is_match("a b", "b") && !is_match("a b", "a c"));
    assert_eq!(error_texts("| `a … b` | c |\n|---|\n| ``x `y` `` | z |"), ["a … b", "x `y`"]);
    assert_eq!(printed("    f(\n        \"a \\\n         b \\\"c\\\"\"\n"), "f(\n\"a b \"c\"\"\n");
    assert_eq!(hidden("# a\n```rust\n# b\n#[c]\n    #\n```\n```sh\n# d\n```\n"), ["# b", "    #"]);
    assert_eq!(literal("&format!(\"a {b:?} \\\"c\\\"\", d)").unwrap(), "a … \"c\"");
    assert_eq!(code("a `b` c\n```sh\nd `e`\n```\nf `g\nh`"), ["b", "g h"]);
}
