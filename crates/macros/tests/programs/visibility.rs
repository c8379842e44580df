// A message is as visible as its method.
#![deny(warnings, missing_docs, unreachable_pub)]
//! A crate.

mod private {
    use playhouse::prelude::*;

    pub(crate) struct Counter(pub(crate) u64);

    #[actor]
    impl Counter {
        #[message]
        pub(crate) fn get(&self) -> u64 {
            self.0
        }
        #[message]
        pub(in crate::visibility::private) fn add(&mut self, by: u64) {
            self.0 += by;
        }
        #[message]
        fn bump(&mut self, ctx: &mut Context<Self>) {
            ctx.this().tell(Add(1));
        }
    }

    pub(crate) fn bump(counter: ActorRef<Counter>) {
        counter.tell(Bump);
    }
}

#[test]
fn runs() -> playhouse::Result<()> {
    let system = playhouse::System::start()?;
    let counter = system.spawn(private::Counter(1));
    private::bump(counter);
    system.run_until_idle();
    assert_eq!(counter.ask(private::Get).wait()?, 2);
    system.shutdown()?;
    Ok(())
}
