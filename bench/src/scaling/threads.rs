//! The harness of hand-written patterns: each thread has nodes of its own, and sends messages to other threads in batches.
//!
//! Each thread handles the messages for its nodes from a local queue. A message for another thread waits in a buffer. A buffer goes
//! into the other thread's inbox when it is full, when the other thread waits, or when the sender's queue is empty.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::harness::outcome::Failure;

/// The number of messages in a full buffer, and between two looks at the inbox.
const BATCH: usize = 64;

/// A node of a pattern: its state and its handler.
pub(crate) trait Node: Send {
    /// The type of its messages.
    type Message: Copy + Send;

    /// Handles a message for the node of number `me`.
    fn handle(&mut self, me: u32, message: Self::Message, out: &mut Outbox<'_, Self::Message>);
}

/// The assignment of nodes to threads.
#[derive(Clone, Copy)]
pub(crate) enum Partition {
    /// Neighbouring numbers have the same thread.
    Blocks,
    /// Neighbouring numbers have different threads.
    RoundRobin,
}

/// A partition of a number of nodes.
#[derive(Clone, Copy)]
struct Layout {
    partition: Partition,
    threads: usize,
    block: usize,
}

impl Layout {
    fn new(partition: Partition, nodes: usize, threads: usize) -> Self {
        Self { partition, threads, block: nodes.div_ceil(threads).max(1) }
    }

    /// Returns the thread of a node, and the node's number among the nodes of that thread.
    #[inline]
    fn place(self, node: u32) -> (usize, usize) {
        let node = node as usize;
        match self.partition {
            Partition::Blocks => (node / self.block, node % self.block),
            Partition::RoundRobin => (node % self.threads, node / self.threads),
        }
    }
}

/// Messages for one thread from all others.
struct Inbox<M> {
    messages: Mutex<Vec<(u32, M)>>,
    /// Set while the thread waits and no other thread has notified it.
    idle: AtomicBool,
    filled: Condvar,
}

/// The state that all threads share.
struct Shared<M> {
    inboxes: Vec<Inbox<M>>,
    /// The number of idle threads.
    idle: AtomicUsize,
    stopped: AtomicBool,
}

impl<M> Shared<M> {
    fn new(threads: usize) -> Self {
        let inbox =
            |_| Inbox { messages: Mutex::new(Vec::new()), idle: AtomicBool::new(false), filled: Condvar::new() };
        Self { inboxes: (0..threads).map(inbox).collect(), idle: AtomicUsize::new(0), stopped: AtomicBool::new(false) }
    }

    fn lock(&self, thread: usize) -> MutexGuard<'_, Vec<(u32, M)>> {
        self.inboxes[thread].messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a batch to another thread.
    fn fill(&self, thread: usize, batch: &mut Vec<(u32, M)>) {
        let was_idle = {
            let mut messages = self.lock(thread);
            messages.append(batch);
            // Under the lock, because the thread must not set the flag and begin to wait before the notification.
            self.clear_idle(thread)
        };
        // One notification per wait, because each is a system call.
        if was_idle {
            self.inboxes[thread].filled.notify_one();
        }
    }

    /// Notes that a thread is no longer idle. Returns whether it was idle.
    fn clear_idle(&self, thread: usize) -> bool {
        let inbox = &self.inboxes[thread];
        let was_idle = inbox.idle.load(Ordering::SeqCst) && inbox.idle.swap(false, Ordering::SeqCst);
        if was_idle {
            self.idle.fetch_sub(1, Ordering::SeqCst);
        }
        was_idle
    }

    /// Moves the messages for a thread into its queue.
    fn take(&self, thread: usize, queue: &mut VecDeque<(u32, M)>) {
        queue.extend(self.lock(thread).drain(..));
    }

    /// Waits for messages, and moves them into the queue. Returns false if the threads are stopped and no message is left.
    fn wait(&self, thread: usize, queue: &mut VecDeque<(u32, M)>) -> bool {
        let inbox = &self.inboxes[thread];
        let mut messages = self.lock(thread);
        while messages.is_empty() && !self.stopped.load(Ordering::SeqCst) {
            if !inbox.idle.swap(true, Ordering::SeqCst) {
                self.idle.fetch_add(1, Ordering::SeqCst);
            }
            messages = inbox.filled.wait(messages).unwrap_or_else(PoisonError::into_inner);
        }
        self.clear_idle(thread);
        queue.extend(messages.drain(..));
        !queue.is_empty()
    }
}

/// The messages that leave a node.
pub(crate) struct Outbox<'a, M> {
    layout: Layout,
    thread: usize,
    queue: VecDeque<(u32, M)>,
    buffers: Vec<Vec<(u32, M)>>,
    /// The number of messages in the buffers.
    buffered: usize,
    shared: &'a Shared<M>,
}

impl<M> Outbox<'_, M> {
    /// Sends a message to the node of number `to`.
    #[inline]
    pub(crate) fn send(&mut self, to: u32, message: M) {
        let (thread, _) = self.layout.place(to);
        if thread == self.thread {
            return self.queue.push_back((to, message));
        }
        self.buffers[thread].push((to, message));
        self.buffered += 1;
        if self.buffers[thread].len() >= BATCH {
            self.fill(thread);
        }
    }

    fn fill(&mut self, thread: usize) {
        self.buffered -= self.buffers[thread].len();
        self.shared.fill(thread, &mut self.buffers[thread]);
    }

    /// Sends all buffers that are not empty. With `only_idle`, sends only those for idle threads.
    fn flush(&mut self, only_idle: bool) {
        for thread in 0..self.buffers.len() {
            let is_due = !only_idle || self.shared.inboxes[thread].idle.load(Ordering::Relaxed);
            if is_due && !self.buffers[thread].is_empty() {
                self.fill(thread);
            }
        }
    }

    /// Sends the buffers for idle threads.
    #[inline]
    fn share(&mut self) {
        if self.buffered > 0 && self.shared.idle.load(Ordering::Relaxed) > 0 {
            self.flush(true);
        }
    }
}

/// A sender of messages to the nodes from a thread without nodes.
pub(crate) struct Injector<'a, M> {
    layout: Layout,
    shared: &'a Shared<M>,
}

impl<M> Injector<'_, M> {
    /// Sends these messages, each with the number of its node, in one batch per thread.
    pub(crate) fn send(&self, messages: impl IntoIterator<Item = (u32, M)>) {
        let mut batches: Vec<_> = (0..self.layout.threads).map(|_| Vec::new()).collect();
        for (to, message) in messages {
            batches[self.layout.place(to).0].push((to, message));
        }
        for (thread, mut batch) in batches.into_iter().enumerate() {
            if !batch.is_empty() {
                self.shared.fill(thread, &mut batch);
            }
        }
    }
}

/// A guard that ends the threads when the body ends, also by an error or a panic.
struct StopGuard<'a, M>(&'a Shared<M>);

impl<M> Drop for StopGuard<'_, M> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        for (thread, inbox) in self.0.inboxes.iter().enumerate() {
            // Under the lock, the thread either reads `stopped` later, or it waits and gets the notification.
            let _messages = self.0.lock(thread);
            inbox.filled.notify_one();
        }
    }
}

/// Runs `body` beside `threads` threads that have the `nodes`. Returns the nodes in their order when the threads have ended.
///
/// # Errors
///
/// Fails if `body` fails, or if a thread has panicked.
pub(crate) fn with_threads<N: Node>(
    threads: usize,
    partition: Partition,
    nodes: Vec<N>,
    body: impl FnOnce(&Injector<'_, N::Message>) -> Result<(), Failure>,
) -> Result<Vec<N>, Failure> {
    let (count, layout) = (nodes.len(), Layout::new(partition, nodes.len(), threads));
    let mut parts: Vec<Vec<N>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, node) in nodes.into_iter().enumerate() {
        parts[layout.place(number as u32).0].push(node);
    }
    let shared = &Shared::new(threads);
    let parts: Vec<Vec<N>> = thread::scope(|scope| {
        let start = |(thread, part)| scope.spawn(move || run(thread, part, layout, shared));
        let running: Vec<_> = parts.into_iter().enumerate().map(start).collect();
        let guard = StopGuard(shared);
        body(&Injector { layout, shared })?;
        drop(guard);
        let panicked = |_| Failure::new("a thread panicked");
        running.into_iter().map(|thread| thread.join().map_err(panicked)).collect::<Result<_, Failure>>()
    })?;
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    // The nodes of a thread are in the order of their numbers.
    let nodes: Option<Vec<N>> = (0..count).map(|number| parts[layout.place(number as u32).0].next()).collect();
    nodes.ok_or_else(|| Failure::new("a thread has lost a node"))
}

/// Runs one thread until it is stopped, and returns its nodes.
fn run<N: Node>(thread: usize, mut nodes: Vec<N>, layout: Layout, shared: &Shared<N::Message>) -> Vec<N> {
    let buffers = (0..layout.threads).map(|_| Vec::new()).collect();
    let mut out = Outbox { layout, thread, queue: VecDeque::new(), buffers, buffered: 0, shared };
    let mut handled = 0_usize;
    loop {
        while let Some((to, message)) = out.queue.pop_front() {
            nodes[layout.place(to).1].handle(to, message, &mut out);
            handled += 1;
            if handled.is_multiple_of(BATCH) {
                out.flush(false);
                shared.take(thread, &mut out.queue);
            } else {
                out.share();
            }
        }
        out.flush(false);
        if !shared.wait(thread, &mut out.queue) {
            return nodes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::goal::Goal;
    use super::*;
    use crate::harness::outcome::Size;

    struct Counter {
        nodes: u32,
        got: u64,
        goal: Goal,
    }

    impl Node for Counter {
        type Message = u32;

        fn handle(&mut self, me: u32, left: u32, out: &mut Outbox<'_, u32>) {
            self.got += 1;
            if left > 0 {
                out.send((me + 1) % self.nodes, left - 1);
            } else {
                self.goal.part_done();
            }
        }
    }

    #[test]
    fn a_ring_over_threads_hands_each_message_on() {
        for (threads, partition) in
            [(1, Partition::Blocks), (2, Partition::Blocks), (3, Partition::Blocks), (3, Partition::RoundRobin)]
        {
            let goal = Goal::new();
            let nodes = (0..10).map(|_| Counter { nodes: 10, got: 0, goal: goal.clone() }).collect();
            goal.set(4);
            let nodes = with_threads(threads, partition, nodes, |injector| {
                injector.send((0..4).map(|token| (token, 99)));
                goal.wait(Size::Smoke.deadline()).map(drop)
            });
            let got: Vec<_> = nodes.unwrap().iter().map(|node| node.got).collect();
            assert_eq!(got, [40; 10], "{threads} threads");
        }
    }

    #[test]
    fn nodes_come_back_in_their_order() {
        struct Silent(u32);

        impl Node for Silent {
            type Message = ();

            fn handle(&mut self, _: u32, (): (), _: &mut Outbox<'_, ()>) {}
        }

        for partition in [Partition::Blocks, Partition::RoundRobin] {
            for threads in 1..8 {
                let nodes = with_threads(threads, partition, (0..5).map(Silent).collect(), |_| Ok(())).unwrap();
                assert_eq!(nodes.iter().map(|node| node.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
            }
        }
    }

    #[test]
    fn an_error_of_the_body_ends_the_threads() {
        let goal = Goal::new();
        let nodes = vec![Counter { nodes: 1, got: 0, goal }];
        let failed = with_threads(2, Partition::Blocks, nodes, |_| Err(Failure::new("as intended")));
        assert_eq!(failed.err(), Some(Failure::new("as intended")));
    }
}
