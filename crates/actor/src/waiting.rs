//! Who waits for whom: finds ask cycles before they hang.
//!
//! An actor whose async handler awaits an ask handles nothing else until the answer is there. If the actor it asked
//! waits, over any number of others, for itself, no answer can come. Each awaited ask between actors therefore notes an
//! edge here before the asker is suspended; the edge that would close a cycle fails its ask at once, with the path.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use crate::actor::ActorId;

thread_local! {
    static POLLED: Cell<Option<ActorId>> = const { Cell::new(None) };
}

/// The actor whose async handler is being polled on this thread.
pub(crate) fn current_actor() -> Option<ActorId> {
    POLLED.get()
}

/// Polls `future` as part of `actor`'s handler.
pub(crate) async fn as_actor<F: Future>(actor: ActorId, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(move |cx| {
        let _restore = Restore(POLLED.replace(Some(actor)));
        future.as_mut().poll(cx)
    })
    .await
}

struct Restore(Option<ActorId>);

impl Drop for Restore {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

/// One edge per awaited ask: from whom, to whom, and what it is called in a report.
struct Edge {
    to: ActorId,
    to_name: String,
    token: u64,
}

#[derive(Default)]
struct Graph {
    edges: HashMap<ActorId, Vec<Edge>>,
    next_token: u64,
}

static GRAPH: Mutex<Option<Graph>> = Mutex::new(None);

/// A noted edge; taken back when dropped.
pub(crate) struct Waiting {
    from: ActorId,
    token: u64,
}

/// Notes that `from` waits for `to`.
///
/// # Errors
/// The names along the cycle that this would close, from the one that is asked back to itself.
pub(crate) fn note(from: ActorId, to: ActorId, to_name: String) -> Result<Waiting, Vec<String>> {
    let mut guard = GRAPH.lock().unwrap_or_else(PoisonError::into_inner);
    let graph = guard.get_or_insert_with(Graph::default);
    let mut path = vec![to_name.clone()];
    if from == to || graph.leads_to(to, from, &mut path, &mut Vec::new()) {
        if from == to {
            path.push(to_name);
        } else {
            let first = path[0].clone();
            path.push(first);
        }
        return Err(path);
    }
    let token = graph.next_token;
    graph.next_token += 1;
    graph.edges.entry(from).or_default().push(Edge { to, to_name, token });
    Ok(Waiting { from, token })
}

impl Graph {
    fn leads_to(&self, at: ActorId, goal: ActorId, path: &mut Vec<String>, seen: &mut Vec<ActorId>) -> bool {
        if seen.contains(&at) {
            return false;
        }
        seen.push(at);
        for edge in self.edges.get(&at).into_iter().flatten() {
            path.push(edge.to_name.clone());
            if edge.to == goal || self.leads_to(edge.to, goal, path, seen) {
                return true;
            }
            path.pop();
        }
        false
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut guard = GRAPH.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(graph) = guard.as_mut() else { return };
        if let Some(edges) = graph.edges.get_mut(&self.from) {
            edges.retain(|edge| edge.token != self.token);
            if edges.is_empty() {
                graph.edges.remove(&self.from);
            }
        }
    }
}
