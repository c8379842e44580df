// Names that must not disturb the generated code.
mod shop {
    pub struct Order(pub u8);
}

// The macro means none of these.
#[allow(dead_code)]
struct Context;
#[allow(dead_code)]
trait Handler {}
#[allow(dead_code)]
trait Send {}
#[allow(dead_code)]
enum Option {}
#[allow(dead_code)]
mod core {}

struct Counter(u64);

#[playhouse::actor]
impl Counter {
    #[message]
    fn order(&mut self, msg: shop::Order, ctx: &mut playhouse::Context<Self>) -> u8 {
        let _ = ctx.this();
        msg.0
    }

    #[message(name = "Result")]
    fn handle(&mut self, ctx: u64) -> u64 {
        self.0 + ctx
    }
}

#[test]
fn runs() {
    let system = playhouse::System::start().unwrap();
    let counter = system.spawn(Counter(1));
    assert_eq!(counter.ask(Order(shop::Order(2))).wait().unwrap(), 2);
    assert_eq!(counter.ask(Result(2)).wait().unwrap(), 3);
    system.shutdown().unwrap();
}
