//! A chat room: it sends each post to all members and keeps it. A later member gets all earlier posts. The program stands in
//! for a student's program. The thesis gives only its name.

use std::sync::Arc;

use playhouse::prelude::*;

use super::passing::{pass, share, write};

const MEMBERS: usize = 32;

#[derive(Default)]
struct Room {
    members: Vec<ActorRef<Member>>,
    history: Arc<Vec<Arc<str>>>,
}

#[actor]
impl Room {
    #[message]
    fn join(&mut self, member: ActorRef<Member>) {
        member.tell(Welcome(share(&self.history)));
        self.members.push(member);
    }

    #[message]
    fn post(&mut self, author: usize, text: String) {
        let post: Arc<str> = format!("{author}: {text}").into();
        for member in &self.members {
            member.tell(Hear(share(&post)));
        }
        write(&mut self.history).push(post);
    }

    #[message]
    fn history(&self) -> Arc<Vec<Arc<str>>> {
        Arc::clone(&self.history)
    }
}

struct Member {
    number: usize,
    room: ActorRef<Room>,
    posts: usize,
    before: Arc<Vec<Arc<str>>>,
    heard: Vec<Arc<str>>,
}

#[actor]
impl Member {
    #[message]
    fn enter(&mut self, ctx: &mut Context<Self>) {
        self.room.tell(Join(pass(ctx.this())));
        for number in 0..self.posts {
            self.room.tell(Post(pass(self.number), pass(format!("post {number}"))));
        }
    }

    #[message]
    fn welcome(&mut self, before: Arc<Vec<Arc<str>>>) {
        self.before = before;
    }

    #[message]
    fn hear(&mut self, post: Arc<str>) {
        self.heard.push(post);
    }

    #[message]
    fn has_heard(&self, all: Arc<Vec<Arc<str>>>) -> bool {
        self.before.iter().chain(&self.heard).eq(all.iter())
    }
}

pub(super) fn run(system: &System, posts: usize) -> playhouse::Result<bool> {
    let room = system.spawn(Room::default());
    let member = |number| Member { number, room, posts, before: Arc::default(), heard: Vec::new() };
    let members: Vec<_> = (0..MEMBERS).map(|number| system.spawn(member(number))).collect();
    for member in &members {
        member.tell(Enter);
    }
    system.run_until_idle();
    let history = room.ask(History).wait()?;
    for member in members {
        if !member.ask(HasHeard(share(&history))).wait()? {
            return Ok(false);
        }
    }
    Ok(history.len() == MEMBERS * posts)
}
