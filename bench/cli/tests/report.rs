//! `playhouse bench --report` and `--sweep-workers`, as a user runs them.

mod program;

use std::fs;
use std::path::{Path, PathBuf};

use program::{refused, run};
use serde_json::Value;

/// A folder that is not there yet, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{test}-{}", std::process::id())))
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Of how many pixels the colour is not that of the first one.
fn drawn(png: &[u8]) -> usize {
    let picture = tiny_skia::Pixmap::decode_png(png).unwrap();
    picture.pixels().iter().filter(|&pixel| *pixel != picture.pixels()[0]).count()
}

#[test]
fn a_report_has_a_page_plots_and_all_figures() {
    let folder = Folder::new("whole");
    let benchmarks = ["count", "flood", "fib"];
    let options = ["bench", "--size", "smoke", "--runs", "2", "--workers", "2", "--report", folder.name()];
    let (code, out, errors) = run(&[&options[..], &benchmarks].concat());
    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("\nfib ") && out.ends_with(&format!("{}\n", folder.0.join("index.html").display())), "{out}");
    let plots = ["bars", "latency", "memory", "scaling"];
    let mut files =
        vec!["index.html", "latency.csv", "raw.csv", "scaling.csv"].into_iter().map(str::to_owned).collect::<Vec<_>>();
    files.extend(plots.iter().flat_map(|plot| [format!("{plot}.png"), format!("{plot}.svg")]));
    files.sort();
    assert_eq!(folder.files(), files);

    for plot in plots {
        let svg = folder.text(&format!("{plot}.svg"));
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{plot}.svg: {error}"));
        assert!(document.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")), "{plot}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{plot}");
        let png = fs::read(folder.0.join(format!("{plot}.png"))).unwrap();
        assert!(drawn(&png) > 1_000, "{plot}.png is blank");
    }

    let raw: Vec<Vec<String>> =
        folder.text("raw.csv").lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    assert_eq!(raw[0][..4], ["bench", "op", "size", "who"]);
    assert!(raw.iter().all(|line| line.len() == raw[0].len()), "{raw:?}");
    for benchmark in benchmarks {
        let runs: Vec<_> = raw.iter().filter(|line| line[0] == benchmark).collect();
        assert_eq!(runs.iter().map(|run| &*run[6]).collect::<Vec<_>>(), ["1", "2"], "{raw:?}");
        assert!(runs.iter().all(|run| run[8].parse::<f64>().unwrap() > 0.0), "{raw:?}");
        assert!(runs.iter().all(|run| run[9].is_empty() == (benchmark == "flood")), "{raw:?}");
    }
    let scaling = folder.text("scaling.csv");
    assert_eq!(scaling.lines().filter(|line| line.starts_with("fib,actor,smoke,1,")).count(), 2, "{scaling}");
    let latency = folder.text("latency.csv");
    assert_eq!(latency.lines().filter(|line| line.starts_with("flood,2,")).count(), 24, "{latency}");

    let page = folder.text("index.html");
    let document = roxmltree::Document::parse_with_options(
        &page.replacen("<!doctype html>\n", "", 1),
        roxmltree::ParsingOptions::default(),
    )
    .map(|document| {
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            assert!(!["script", "link", "img", "iframe", "object"].contains(&node.tag_name().name()), "{node:?}");
            for attribute in node.attributes().filter(|attribute| ["href", "src"].contains(&attribute.name())) {
                assert!(files.iter().any(|file| file == attribute.value()), "{attribute:?} is not of this report");
            }
        }
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "svg"))).count()
    });
    assert_eq!(document, Ok(plots.len()), "a page with its plots");
    assert!(!page.contains("url(") && !page.contains("@import"), "it loads nothing");
    for words in [
        &benchmarks[..],
        &[
            "bench --size smoke --runs 2",
            "profile debug",
            "even the fastest and the slowest",
            env!("CARGO_PKG_VERSION"),
        ],
    ]
    .concat()
    {
        assert!(page.contains(words), "no {words}");
    }
}

#[test]
fn a_report_shows_patterns_with_and_without_benchmarks() {
    let options = ["bench", "--size", "smoke", "--runs", "2", "--workers", "2", "--work-ns", "0,1000", "--report"];
    for (names, files) in [
        (&["scaling-tree", "scaling-bursty"][..], vec!["index.html"]),
        (&["scaling-tree", "fib", "scaling-bursty"], vec!["bars.png", "bars.svg", "index.html", "memory.png"]),
    ] {
        let folder = Folder::new(&format!("patterns-{}", names.len()));
        let (code, out, errors) = run(&[&options[..], &[folder.name()], names].concat());
        assert_eq!(code, 0, "{errors}\n{out}");
        let written = folder.files();
        let own = ["scaling-patterns.csv", "scaling-patterns.png", "scaling-patterns.svg"];
        assert!(files.iter().chain(&own).all(|file| written.iter().any(|known| known == file)), "{written:?}");
        assert_eq!(written.iter().any(|file| file == "raw.csv"), names.contains(&"fib"), "{written:?}");

        let csv = folder.text("scaling-patterns.csv");
        let lines: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
        // There are 2 patterns, amounts of work, numbers of workers and runs, and 3 implementations.
        assert_eq!(lines.len(), 1 + 2 * 2 * 2 * 2 * 3, "{csv}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
        for line in &lines[1..] {
            assert!(line[8].parse::<f64>().unwrap() > 0.0, "{csv}");
            assert_eq!(line[9..].iter().all(|cell| !cell.is_empty()), line[5] == "playhouse", "{csv}");
        }
        let page = folder.text("index.html");
        roxmltree::Document::parse_with_options(
            &page.replacen("<!doctype html>\n", "", 1),
            roxmltree::ParsingOptions::default(),
        )
        .unwrap();
        let words =
            ["<td>scaling-bursty</td>", "id=\"scaling-patterns\"", "href=\"scaling-patterns.csv\"", "Targets, on two"];
        assert!(words.iter().all(|words| page.contains(words)), "{page}");
        assert_eq!(page.contains("raw.csv"), names.contains(&"fib"));
        let svg = folder.text("scaling-patterns.svg");
        assert!(svg.contains("scaling-tree, 1 µs") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[cfg(unix)]
#[test]
fn peers_are_in_a_report_beside_ours() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, peers) = (Folder::new("peers"), Folder::new("no-peers"));
    let erlang = peers.0.join("bin/erlang");
    fs::create_dir_all(peers.0.join("bin")).unwrap();
    fs::write(peers.0.join("install"), "").unwrap();
    let answer = r#"{"peer":"erlang","version":"25","workload":"rcreate","ops":100,"ns":900}"#;
    fs::write(&erlang, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
    fs::set_permissions(&erlang, fs::Permissions::from_mode(0o755)).unwrap();
    let options = ["bench", "--size", "smoke", "--runs", "1", "--workers", "1", "--peers", "--peers-dir", peers.name()];
    let (code, _, errors) = run(&[&options[..], &["--report", folder.name(), "rcreate"]].concat());
    assert_eq!(code, 0, "{errors}");
    let raw = folder.text("raw.csv");
    assert!(raw.lines().nth(1).unwrap().starts_with("rcreate,actor,playhouse,"), "{raw}");
    assert!(raw.lines().nth(2).unwrap().starts_with("rcreate,actor,erlang,25,1,100,1,9,"), "{raw}");
    let page = folder.text("index.html");
    assert!(page.contains("<td>erlang</td>") && page.contains("None of these benchmarks is of one process"), "{page}");
    assert!(
        page.contains("beside other actor runtimes") && page.contains("there are no confidence intervals"),
        "{page}"
    );
}

#[test]
fn a_folder_that_cannot_take_a_report_is_refused_before_anything_runs() {
    let folder = Folder::new("taken");
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("mine");
    fs::write(&file, "mine").unwrap();
    refused(&["bench", "count", "--report", folder.name()], &[folder.name(), "not empty"]);
    let below = file.join("report");
    refused(&["bench", "count", "--report", below.to_str().unwrap()], &["no report can go to"]);
    refused(&["bench", "count", "--report", file.to_str().unwrap()], &["no report can go to"]);
    assert_eq!((folder.files(), folder.text("mine")), (vec!["mine".to_owned()], "mine".to_owned()));
    #[cfg(target_os = "linux")]
    {
        // No user can write there.
        let (code, out, errors) = run(&["bench", "count", "--report", "/proc/report"]);
        assert_eq!((code, &*out), (1, ""), "{errors}");
        assert!(errors.contains("no report can go to /proc/report: /proc cannot be written"), "{errors}");
    }
    refused(&["bench", "count", "--report", "x", "--json"], &["--report", "--json"]);
    refused(&["bench", "count", "--sweep-workers", "--workers", "2"], &["--sweep-workers", "--workers"]);
}

#[test]
fn a_sweep_over_workers_begins_with_one_and_ends_with_all() {
    let options = ["bench", "--size", "smoke", "--runs", "2", "--sweep-workers"];
    let (code, out, errors) = run(&[&options[..], &["fib", "pingpong-cross"]].concat());
    assert_eq!((code, &*errors), (0, ""));
    assert!(out.contains("benchmark") && out.contains("\nfib ") && out.contains("all cores"), "{out}");
    let (_, out, _) = run(&[&options[..], &["--json", "fib", "pingpong-cross"]].concat());
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let threads = std::thread::available_parallelism().unwrap().get();
    for row in &rows {
        let workers = row["workers"].as_array().unwrap();
        assert_eq!((&workers[0], workers.last().unwrap()), (&1.into(), &threads.min(1_024).into()), "{row}");
    }
    assert_eq!((&rows[0]["speedup"][0], rows[0]["runs"][0].as_array().unwrap().len()), (&1.0.into(), 2), "{rows:?}");
    // It needs two.
    assert_eq!(rows[1]["ns_per_op"][0], Value::Null, "{rows:?}");
}
