//! Shortest paths from one vertex of a graph to all others, an actor per vertex. A path is a list that shares its beginning
//! with the paths from which it was made.

use std::sync::Arc;

use playhouse::prelude::*;

use super::passing::{Payload, pass, share};

/// A path, from its end.
struct Path {
    vertex: usize,
    before: Option<Arc<Path>>,
}

impl Payload for Path {
    fn deep_copy(&self) -> Self {
        Path { vertex: self.vertex, before: self.before.deep_copy() }
    }
}

type Edges = Vec<(ActorRef<Vertex>, u64)>;

struct Vertex {
    number: usize,
    edges: Edges,
    distance: u64,
    path: Option<Arc<Path>>,
}

#[actor]
impl Vertex {
    #[message]
    fn connect(&mut self, edges: Edges) {
        self.edges = edges;
    }

    #[message]
    fn relax(&mut self, distance: u64, before: Option<Arc<Path>>) {
        if distance >= self.distance {
            return;
        }
        let path = Arc::new(Path { vertex: self.number, before });
        for (vertex, length) in &self.edges {
            vertex.tell(Relax(pass(distance + length), Some(share(&path))));
        }
        (self.distance, self.path) = (distance, Some(path));
    }

    /// The distance, and the vertices on the path from this vertex to the source.
    #[message]
    fn found(&self) -> (u64, Vec<usize>) {
        let steps = std::iter::successors(self.path.as_ref(), |path| path.before.as_ref());
        (self.distance, steps.map(|step| step.vertex).collect())
    }
}

/// Returns the neighbours of a vertex and their distances.
fn edges(vertex: usize, vertices: usize) -> impl Iterator<Item = (usize, u64)> {
    let length = move |factor: usize| ((vertex * 31 + factor * 17) % 23 + 1) as u64;
    [1, 2, 5, 11].into_iter().map(move |factor| ((vertex * factor + 1) % vertices, length(factor)))
}

/// Computes the distances without actors, after Bellman and Ford.
fn distances(vertices: usize) -> Vec<u64> {
    let mut distances = vec![u64::MAX; vertices];
    distances[0] = 0;
    loop {
        let before = distances.to_vec();
        for from in (0..vertices).filter(|from| before[*from] < u64::MAX) {
            for (to, length) in edges(from, vertices) {
                distances[to] = distances[to].min(before[from] + length);
            }
        }
        if before == distances {
            return distances;
        }
    }
}

pub(super) fn run(system: &System, vertices: usize) -> playhouse::Result<bool> {
    let vertex = |number| system.spawn(Vertex { number, edges: Vec::new(), distance: u64::MAX, path: None });
    let actors: Vec<_> = (0..vertices).map(vertex).collect();
    for (number, vertex) in actors.iter().enumerate() {
        let edges = edges(number, vertices).map(|(to, length)| (actors[to], length)).collect();
        vertex.tell(Connect(pass(edges)));
    }
    system.run_until_idle();
    actors[0].tell(Relax(pass(0), pass(None)));
    system.run_until_idle();
    for (number, expected) in distances(vertices).into_iter().enumerate() {
        let (distance, path) = actors[number].ask(Found).wait()?;
        let is_path = path.first() == Some(&number) && path.last() == Some(&0);
        if distance != expected || !is_path {
            return Ok(false);
        }
    }
    Ok(true)
}
