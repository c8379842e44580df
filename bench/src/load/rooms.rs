//! Requests to the rooms, and checks of their answers.

use std::fmt;

use super::answer::Answer;
use crate::harness::outcome::{Failure, check};
use crate::harness::random::Dice;

/// The rooms of a server.
const ROOMS: usize = 10_000;
/// The most posts that a room answers with.
const KEPT: u64 = 20;
/// The text of each post.
const TEXT: &str = "hello, room";

/// A request.
pub(super) enum Request {
    /// A post to a room.
    Post { room: usize },
    /// A GET of the last posts of a room, which had answered `posts` posts at the time of the request.
    Get { room: usize, answered: u64 },
}

impl Request {
    /// Returns the specific part behind the common part of the head.
    pub(super) fn rest(&self) -> &'static str {
        match self {
            Self::Post { .. } => "Content-Type: text/plain\r\nContent-Length: 11\r\n\r\nhello, room",
            Self::Get { .. } => "\r\n",
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post { room } => write!(f, "POST /rooms/{room}"),
            Self::Get { room, .. } => write!(f, "GET /rooms/{room}"),
        }
    }
}

/// The posts of a room.
#[derive(Clone, Default)]
struct Posts {
    sent: u64,
    answered: u64,
    /// The numbers that the server has answered with, added up.
    numbers: u64,
}

/// All rooms, as the load expects them.
pub(super) struct Rooms {
    posts: Vec<Posts>,
    dice: Dice,
    drawn: u64,
}

impl Rooms {
    pub(super) fn new(seed: u32) -> Self {
        Self { posts: vec![Posts::default(); ROOMS], dice: Dice::of_client(seed, 0), drawn: 0 }
    }

    /// Draws the next request. It counts as sent.
    pub(super) fn draw(&mut self) -> Request {
        self.drawn += 1;
        let room = self.dice.pick(ROOMS);
        let posts = &mut self.posts[room];
        if self.drawn.is_multiple_of(5) {
            return Request::Get { room, answered: posts.answered };
        }
        posts.sent += 1;
        Request::Post { room }
    }

    /// Checks the answer to `request`.
    pub(super) fn take(&mut self, request: &Request, Answer { status, body }: &Answer<'_>) -> Result<(), Failure> {
        if *status != "200 OK" {
            return Err(Failure::new(format!("{request} was answered with {status}: {body}")));
        }
        let right = match *request {
            Request::Post { room } => {
                let posts = &mut self.posts[room];
                let number = body.parse().ok().filter(|number| (1..=posts.sent).contains(number));
                posts.answered += 1;
                posts.numbers += number.unwrap_or_default();
                number.is_some()
            }
            Request::Get { room, answered } => {
                let texts: Vec<&str> = serde_json::from_str(body).unwrap_or_else(|_| vec!["not JSON"]);
                let counts = answered.min(KEPT)..=self.posts[room].sent.min(KEPT);
                texts.iter().all(|text| *text == TEXT) && counts.contains(&(texts.len() as u64))
            }
        };
        if right { Ok(()) } else { Err(Failure::new(format!("{request} was answered with a wrong body: {body}"))) }
    }

    /// Checks that each room has numbered its posts one by one, and returns the number of posts.
    pub(super) fn check_numbers(&self) -> Result<u64, Failure> {
        for (room, posts) in self.posts.iter().enumerate() {
            let sum = posts.sent * (posts.sent + 1) / 2;
            check(&format!("the sum of the numbers of the posts to room {room}"), sum, posts.numbers)?;
        }
        Ok(self.posts.iter().map(|posts| posts.sent).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_post_is_right_and_four_of_five_requests_are_posts() {
        let (head, body) = Request::Post { room: 1 }.rest().split_once("\r\n\r\n").unwrap();
        assert_eq!((body, head.ends_with(&format!("Content-Length: {}", TEXT.len()))), (TEXT, true));
        let mut rooms = Rooms::new(1);
        let posts = (0..100).filter(|_| matches!(rooms.draw(), Request::Post { .. })).count();
        assert_eq!(posts, 80);
    }

    #[test]
    fn answers_are_right_or_refused() {
        let mut rooms = Rooms::new(1);
        rooms.posts[7] = Posts { sent: 2, answered: 0, numbers: 0 };
        let mut take = |request: &Request, status, body| rooms.take(request, &Answer { status, body });
        let (post, get) = (Request::Post { room: 7 }, Request::Get { room: 7, answered: 1 });
        for (request, body) in [(&post, "3"), (&post, "0"), (&post, "x"), (&get, "[]"), (&get, "oh"), (&get, "[\"\"]")]
        {
            let failure = take(request, "200 OK", body).unwrap_err().to_string();
            assert_eq!(failure, format!("{request} was answered with a wrong body: {body}"));
        }
        take(&get, "200 OK", "[\"hello, room\"]").unwrap();
        take(&post, "200 OK", "2").unwrap();
        let failure = rooms.check_numbers().unwrap_err().to_string();
        assert_eq!(failure, "wrong result: the sum of the numbers of the posts to room 7 should be 3 and is 2");
    }
}
