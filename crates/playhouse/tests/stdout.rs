//! Standard output as an actor: pieces stay whole, and in order; errors are crashes.

mod support;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use playhouse::prelude::*;
use playhouse::stdout::{Flush, Print, Stdout};
use support::{Do, Log, Mourn, Mourner, Puppet, finishes, lock, simulated, threads};

/// Keeps the written bytes: the flushed ones apart from the others.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<(Vec<u8>, Vec<u8>)>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(lock(&self.0).1.clone()).unwrap()
    }
}

impl Write for Paper {
    /// Takes little at a time, and the writer has to call again.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = &bytes[..bytes.len().min(3)];
        lock(&self.0).0.extend_from_slice(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut paper = lock(&self.0);
        let new = std::mem::take(&mut paper.0);
        paper.1.extend(new);
        Ok(())
    }
}

// GUARANTEE: Lines do not mix
#[test]
fn lines_of_many_actors_and_threads_never_mix_and_keep_each_one_s_order() {
    finishes(|| {
        let system = threads(2);
        let paper = Paper::default();
        let out = system.spawn(Stdout::to(paper.clone()));
        for writer in 0..8 {
            system.spawn(Puppet).tell(Do::this(move |_| {
                (0..200).for_each(|n| out.tell(Print::line(format!("writer {writer} says {n}"))));
            }));
        }
        std::thread::scope(|scope| {
            for writer in 8..10 {
                scope.spawn(move || {
                    for n in 0..200 {
                        out.tell(Print::text(format!("writer {writer} says\nwriter {writer} says {n}\n")));
                    }
                });
            }
        });
        system.run_until_idle();
        out.ask(Flush).wait().unwrap();
        let text = paper.text();
        let mut lines = text.lines();
        let mut next = [0; 10];
        while let Some(line) = lines.next() {
            // Text that was sent as one piece is not cut.
            let line = if line.ends_with("says") { lines.next().unwrap() } else { line };
            let words: Vec<&str> = line.split(' ').collect();
            let writer: usize = words[1].parse().unwrap();
            assert_eq!((words.len(), words[3]), (4, next[writer].to_string().as_str()), "{line}");
            next[writer] += 1;
        }
        assert_eq!(next, [200; 10]);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Lines do not mix
#[test]
fn written_text_goes_out_with_a_flush_and_at_the_end() {
    let system = simulated(0);
    let paper = Paper::default();
    let out = system.spawn(Stdout::to(paper.clone()));
    out.ask(Print::line("one")).wait().unwrap();
    assert_eq!(paper.text(), "");
    out.ask(Flush).wait().unwrap();
    assert_eq!(paper.text(), "one\n");
    out.tell(Print::text("two"));
    out.drain();
    system.run_until_idle();
    assert_eq!(paper.text(), "one\ntwo");
}

/// Fails at each write.
struct Wall;

impl Write for Wall {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// GUARANTEE: Lines do not mix
#[test]
fn a_failed_write_to_stdout_is_a_crash() {
    let system = simulated(0);
    let ends = Log::new();
    let out = system.spawn(Stdout::to(Wall));
    system.spawn(Mourner(ends.clone())).ask(Mourn(out)).wait().unwrap();
    assert_eq!(out.ask(Print::line("hello?")).wait(), Err(AskError::Panicked));
    system.run_until_idle();
    assert_eq!(ends.take()[0].reason, StopReason::Failed("nobody reads".to_owned()));
}

#[test]
fn a_text_counts_where_bytes_are_bounded() {
    let system = simulated(0);
    let mailbox = Mailbox::bounded(100).bytes(1000);
    let out = system.spawn_with(SpawnOptions::new().mailbox(mailbox), Stdout::to(Paper::default()));
    assert!(out.try_tell(Print::text("x".repeat(900))).is_ok());
    assert!(matches!(out.try_tell(Print::text("x".repeat(100))), Err(TrySendError::Full(_))));
}
