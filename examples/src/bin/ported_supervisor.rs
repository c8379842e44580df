//! A leaf that panics, its parent that panics with it, and the root that ends: a port of `examples/supervisor.rs` of
//! ractor 0.16.5 (MIT).
//!
//! - Both programs print the same lines but for the words about an end. ractor also tells a parent that a child has started.
//! - ractor links a child to its parent when the parent starts it. In the port, the parent watches the child.
//! - ractor's program pauses after each message. The port does not, because nothing depends on the pauses.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_supervisor
//! ```

use playhouse::prelude::*;

pub(crate) struct Leaf;

#[actor]
impl Leaf {
    #[message]
    pub(crate) fn boom(&mut self) {
        panic!("LeafActor: Oh crap!");
    }

    #[message]
    fn no_op(&mut self) {
        println!("LeafActor: No-op!");
    }
}

#[derive(Default)]
pub(crate) struct MidLevel {
    leaf: Option<ActorRef<Leaf>>,
}

#[actor]
impl MidLevel {
    #[started]
    fn start_leaf(&mut self, ctx: &mut Context<Self>) {
        let leaf = ctx.spawn_with(SpawnOptions::new().name("leaf"), Leaf);
        ctx.watch(leaf);
        self.leaf = Some(leaf);
    }

    #[message]
    pub(crate) fn get_leaf(&self) -> Option<ActorRef<Leaf>> {
        self.leaf
    }

    #[terminated]
    fn leaf_ended(&mut self, terminated: Terminated) {
        println!("MidLevelActor: {terminated}");
        panic!("MidLevelActor: Mid-level actor panicking because {terminated}");
    }
}

#[derive(Default)]
pub(crate) struct Root {
    mid_level: Option<ActorRef<MidLevel>>,
}

#[actor]
impl Root {
    #[started]
    fn start_mid_level(&mut self, ctx: &mut Context<Self>) {
        println!("RootActor: Started {}", ctx.this());
        let mid_level = ctx.spawn_with(SpawnOptions::new().name("mid-level"), MidLevel::default());
        ctx.watch(mid_level);
        self.mid_level = Some(mid_level);
    }

    #[message]
    pub(crate) fn get_mid_level(&self) -> Option<ActorRef<MidLevel>> {
        self.mid_level
    }

    #[terminated]
    fn mid_level_ended(&mut self, terminated: Terminated, ctx: &mut Context<Self>) {
        println!("RootActor: {terminated}");
        println!("RootActor: Terminating root actor, all my kids are dead!");
        ctx.stop();
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let root = system.spawn_with(SpawnOptions::new().name("root"), Root::default());
    let mid_level = root.ask(GetMidLevel).wait()?.ok_or("no mid-level actor")?;
    let leaf = mid_level.ask(GetLeaf).wait()?.ok_or("no leaf actor")?;
    for _ in 1..10 {
        leaf.tell(NoOp);
    }
    leaf.tell(Boom);
    root.ended().wait();
    Ok(())
}
