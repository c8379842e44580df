//! The programs that are ported from other actor runtimes: their lines, and tests of their actors.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse_testkit::Kit;

macro_rules! programs {
    ($($name:ident = $path:literal;)*) => {$(
        #[allow(dead_code, reason = "`main` is not called, and not all messages are sent")]
        #[path = $path]
        mod $name;
    )*};
}

programs! {
    fibonacci = "../src/bin/ported_fibonacci.rs";
    forward = "../src/bin/ported_forward.rs";
    iot = "../src/bin/ported_iot.rs";
    supervisor = "../src/bin/ported_supervisor.rs";
    weak_recipient = "../src/bin/ported_weak_recipient.rs";
}

use iot::TemperatureReading::{self, DeviceNotAvailable, DeviceTimedOut, Temperature, TemperatureNotAvailable};
use iot::{Device, DeviceManager};

// -- lines --------------------------------------------------------------------------------------------------------------

/// Returns whether a line counts: it is neither blank nor a comment as a whole. The ports have no comments between `/*`
/// and `*/`.
fn counts(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with("//")
}

fn lines_that_count(source: &str) -> usize {
    source.lines().filter(|line| counts(line)).count()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Begins the link to a port.
const REPOSITORY: &str = "](https://github.com/playhouse-rs/playhouse/blob/main/";

/// Returns the rows of the table: the file of a port, and its lines in the last column.
fn rows(page: &str) -> Vec<(String, usize)> {
    let rows = page.lines().filter(|line| line.starts_with('|') && line.contains("/ported_"));
    let row = |line: &str| {
        let path = line.split(REPOSITORY).nth(1).and_then(|rest| rest.split(')').next()).expect(line);
        let lines = line.trim_end_matches(['|', ' ']).rsplit('|').next().expect(line);
        (path.to_owned(), lines.trim().parse().expect(line))
    };
    rows.map(row).collect()
}

#[test]
fn the_table_has_each_port_and_its_lines() {
    let mut in_table = rows(&read("guide/src/ported-programs.md"));
    in_table.sort();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let paths = files.filter(|name| name.starts_with("ported_")).map(|name| format!("examples/src/bin/{name}"));
    let mut counted: Vec<_> = paths.map(|path| (path.clone(), lines_that_count(&read(&path)))).collect();
    counted.sort();
    assert_eq!(in_table, counted);
    assert!(!counted.is_empty() && counted.iter().all(|(path, _)| !read(path).contains("/*")));
}

#[test]
fn the_count_leaves_out_blank_lines_and_comments() {
    assert_eq!(lines_that_count("//! A.\n\n/// B.\nfn main() { // c\n    // d\n    \n}\n"), 2);
    let link = format!("[a{REPOSITORY}examples/src/bin/ported_a.rs)");
    let page = format!("| one | [`a`](https://a.b/c) | {link} | 36 | 28 |\n| two | 5 |\n");
    assert_eq!(rows(&page), [("examples/src/bin/ported_a.rs".to_owned(), 28)]);
}

// -- fibonacci ----------------------------------------------------------------------------------------------------------

#[test]
fn fibonacci_has_no_number_zero() {
    let numbers: Vec<_> = (0..10).map(|n| fibonacci::Calculator.fibonacci(n)).collect();
    assert_eq!(numbers, [Err(()), Ok(1), Ok(1), Ok(2), Ok(3), Ok(5), Ok(8), Ok(13), Ok(21), Ok(34)]);
}

// -- forward ------------------------------------------------------------------------------------------------------------

#[playhouse::test]
fn forward_has_the_player_answer_if_there_is_one(system: &System) {
    let player = system.spawn(forward::Player { health: 5.0 });
    let players = system.spawn(forward::Players { players: HashMap::from([(7, player)]) });
    let damage = |player_id| forward::ForwardToPlayer { player_id, message: forward::Damage { amount: 2.0 } };
    assert_eq!(players.ask(damage(7)).wait(), Ok(3.0));
    assert_eq!(players.ask(damage(8)).wait(), Err(AskError::Unanswered));
}

// -- supervisor ---------------------------------------------------------------------------------------------------------

#[playhouse::test]
fn supervisor_ends_from_the_leaf_to_the_root(system: &System) {
    let root = system.spawn(supervisor::Root::default());
    let mid_level = root.ask(supervisor::GetMidLevel).wait().unwrap().unwrap();
    let leaf = mid_level.ask(supervisor::GetLeaf).wait().unwrap().unwrap();
    system.run_until_idle();
    assert_eq!([leaf.is_stopped(), mid_level.is_stopped(), root.is_stopped()], [false; 3]);
    leaf.tell(supervisor::Boom);
    system.run_until_idle();
    assert_eq!([leaf.is_stopped(), mid_level.is_stopped(), root.is_stopped()], [true; 3]);
}

// -- weak_recipient -----------------------------------------------------------------------------------------------------

#[test]
fn weak_recipient_sends_the_time_to_clients_that_live() {
    let kit = Kit::new();
    let service = kit.system().spawn(weak_recipient::TimeService::default());
    kit.system().provide(service);
    let probe = kit.probe();
    service.tell(weak_recipient::RegisterForTime(probe.recipient()));
    let client = kit.system().spawn_owned(weak_recipient::ClientA);
    let pings_in_a_second = || {
        let pings = || kit.sent_by(service).iter().filter(|sent| sent.message == "TimePing").count();
        let before = pings();
        kit.run_for(Duration::from_secs(1));
        pings() - before
    };
    assert_eq!([pings_in_a_second(), pings_in_a_second()], [2, 2]);
    drop(client);
    assert_eq!([pings_in_a_second(), pings_in_a_second()], [1, 1]);
}

// -- iot ----------------------------------------------------------------------------------------------------------------

/// Asks for the temperatures of the group, and keeps the answer.
struct Requester {
    manager: ActorRef<DeviceManager>,
    answer: Option<Vec<(String, TemperatureReading)>>,
}

#[actor]
impl Requester {
    #[message]
    fn request(&mut self, ctx: &mut Context<Self>) {
        ctx.ask(self.manager, iot::RequestAllTemperatures("group".to_owned())).then(|this, answer, _| {
            this.answer = answer.ok().map(|readings| readings.into_iter().collect());
        });
    }

    #[message]
    fn answer(&mut self) -> Option<Vec<(String, TemperatureReading)>> {
        self.answer.take()
    }
}

/// Returns the readings of two devices. `before` runs before the group asks them, and `meanwhile` runs after.
fn readings(
    before: impl Fn(&Kit, [ActorRef<Device>; 2]),
    meanwhile: impl Fn(&Kit, [ActorRef<Device>; 2]),
) -> Vec<TemperatureReading> {
    let kit = Kit::new();
    let manager = kit.system().spawn(DeviceManager::default());
    let devices = ["device1", "device2"].map(|id| {
        let request = iot::RequestTrackDevice { group: "group".to_owned(), device: id.to_owned() };
        manager.ask(request).wait().unwrap()
    });
    before(&kit, devices);
    let requester = kit.system().spawn(Requester { manager, answer: None });
    requester.tell(Request);
    kit.settle();
    meanwhile(&kit, devices);
    kit.run_for(Duration::from_secs(4));
    let answer = requester.ask(Answer).wait().unwrap().expect("the query has ended");
    let (ids, readings): (Vec<_>, Vec<_>) = answer.into_iter().unzip();
    assert_eq!(ids, ["device1", "device2"]);
    readings
}

fn record(device: ActorRef<Device>, value: f64) {
    device.ask(iot::RecordTemperature(value)).wait().unwrap();
}

#[test]
fn iot_returns_the_temperatures_of_working_devices() {
    let before = |_: &Kit, [one, two]: [ActorRef<Device>; 2]| {
        record(one, 1.0);
        record(two, 2.0);
    };
    assert_eq!(readings(before, |_, _| {}), [Temperature(1.0), Temperature(2.0)]);
}

#[test]
fn iot_returns_not_available_for_devices_without_readings() {
    let before = |_: &Kit, [_, two]: [ActorRef<Device>; 2]| record(two, 2.0);
    assert_eq!(readings(before, |_, _| {}), [TemperatureNotAvailable, Temperature(2.0)]);
}

#[test]
fn iot_returns_device_not_available_if_a_device_stops_before_it_answers() {
    let before = |kit: &Kit, [one, two]: [ActorRef<Device>; 2]| {
        record(one, 2.0);
        kit.hold(two);
    };
    let meanwhile = |kit: &Kit, [_, two]: [ActorRef<Device>; 2]| {
        two.kill();
        kit.settle();
        kit.release(two); // the kit holds its mail until then
    };
    assert_eq!(readings(before, meanwhile), [Temperature(2.0), DeviceNotAvailable]);
}

#[test]
fn iot_returns_the_reading_of_a_device_that_stops_after_its_answer() {
    let before = |kit: &Kit, [one, two]: [ActorRef<Device>; 2]| {
        record(one, 1.0);
        record(two, 2.0);
        kit.hold(one);
    };
    let meanwhile = |kit: &Kit, [one, two]: [ActorRef<Device>; 2]| {
        two.stop();
        kit.settle();
        kit.release(one);
    };
    assert_eq!(readings(before, meanwhile), [Temperature(1.0), Temperature(2.0)]);
}

#[test]
fn iot_returns_timed_out_for_a_device_that_does_not_answer_in_time() {
    let before = |kit: &Kit, [one, two]: [ActorRef<Device>; 2]| {
        record(one, 1.0);
        kit.hold(two);
    };
    assert_eq!(readings(before, |_, _| {}), [Temperature(1.0), DeviceTimedOut]);
}
