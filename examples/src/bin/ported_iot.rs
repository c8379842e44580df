//! Devices that measure temperatures, groups of them, and a query with a timeout: a port of the fifth part of Akka's IoT
//! tutorial, `akka-docs/src/test/scala/typed/tutorial_5` (Apache-2.0 in the version of 2019).
//!
//! - Devices, groups and the manager take the same requests and give the same answers. The port prints the lines that
//!   Akka logs.
//! - Akka starts an actor for each query, which watches the devices and sets a timer. In the port, `ask_many` is that
//!   query.
//! - Requests of the port carry no numbers, because an answer belongs to its ask.
//! - A request carries the name of its group to the manager only, so a group is never asked for another one.
//! - Akka runs these actors in tests alone; those of the query are in `tests/ported.rs`. `main` is a run to look at.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_iot
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use playhouse::asks::ask_many;
use playhouse::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TemperatureReading {
    Temperature(f64),
    TemperatureNotAvailable,
    DeviceNotAvailable,
    DeviceTimedOut,
}

use TemperatureReading::{DeviceNotAvailable, DeviceTimedOut, Temperature, TemperatureNotAvailable};

pub(crate) struct Device {
    group: String,
    id: String,
    last_reading: Option<f64>,
}

#[actor]
impl Device {
    #[started]
    fn log_start(&mut self) {
        println!("Device actor {}-{} started", self.group, self.id);
    }

    #[message]
    pub(crate) fn record_temperature(&mut self, value: f64) {
        println!("Recorded temperature reading {value}");
        self.last_reading = Some(value);
    }

    #[message(derive(Clone))]
    pub(crate) fn read_temperature(&self) -> Option<f64> {
        self.last_reading
    }

    #[message]
    pub(crate) fn passivate(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }

    #[stopped]
    fn log_stop(&mut self) {
        println!("Device actor {}-{} stopped", self.group, self.id);
    }
}

pub(crate) struct DeviceGroup {
    id: String,
    devices: BTreeMap<String, ActorRef<Device>>,
}

#[actor]
impl DeviceGroup {
    #[started]
    fn log_start(&mut self) {
        println!("DeviceGroup {} started", self.id);
    }

    #[message]
    fn track(&mut self, id: String, ctx: &mut Context<Self>) -> ActorRef<Device> {
        if let Some(device) = self.devices.get(&id) {
            return *device;
        }
        println!("Creating device actor for {id}");
        let device = ctx.spawn(Device { group: self.id.clone(), id: id.clone(), last_reading: None });
        ctx.watch(device);
        self.devices.insert(id, device);
        device
    }

    #[message]
    fn list(&self) -> BTreeSet<String> {
        self.devices.keys().cloned().collect()
    }

    #[message]
    fn query(&mut self, reply: Reply<BTreeMap<String, TemperatureReading>>, ctx: &mut Context<Self>) {
        let (ids, devices): (Vec<_>, Vec<_>) = self.devices.clone().into_iter().unzip();
        let query = ask_many(devices, ReadTemperature).within(Duration::from_secs(3)).all();
        query.then(ctx, move |_, answers, _| {
            let readings = answers.into_iter().map(|(_, answer)| match answer {
                Ok(Some(value)) => Temperature(value),
                Ok(None) => TemperatureNotAvailable,
                Err(AskError::Deadline { .. }) => DeviceTimedOut,
                Err(_) => DeviceNotAvailable,
            });
            reply.send(ids.into_iter().zip(readings).collect());
        });
    }

    #[terminated]
    fn forget(&mut self, terminated: Terminated) {
        self.devices.retain(|id, device| {
            let lives = device.id() != terminated.who;
            if !lives {
                println!("Device actor for {id} has been terminated");
            }
            lives
        });
    }

    #[stopped]
    fn log_stop(&mut self) {
        println!("DeviceGroup {} stopped", self.id);
    }
}

#[derive(Default)]
pub(crate) struct DeviceManager {
    groups: BTreeMap<String, ActorRef<DeviceGroup>>,
}

#[actor]
impl DeviceManager {
    #[started]
    fn log_start(&mut self) {
        println!("DeviceManager started");
    }

    #[message(named)]
    pub(crate) fn request_track_device(
        &mut self,
        group: String,
        device: String,
        reply: Reply<ActorRef<Device>>,
        ctx: &mut Context<Self>,
    ) {
        let actor = *self.groups.entry(group.clone()).or_insert_with(|| {
            println!("Creating device group actor for {group}");
            let actor = ctx.spawn(DeviceGroup { id: group, devices: BTreeMap::new() });
            ctx.watch(actor);
            actor
        });
        reply.forward(actor, Track(device));
    }

    #[message]
    pub(crate) fn request_device_list(&mut self, group: String, reply: Reply<BTreeSet<String>>) {
        match self.groups.get(&group) {
            Some(group) => reply.forward(*group, List),
            None => reply.send(BTreeSet::new()),
        }
    }

    #[message]
    pub(crate) fn request_all_temperatures(
        &mut self,
        group: String,
        reply: Reply<BTreeMap<String, TemperatureReading>>,
    ) {
        match self.groups.get(&group) {
            Some(group) => reply.forward(*group, Query),
            None => reply.send(BTreeMap::new()),
        }
    }

    #[terminated]
    fn forget(&mut self, terminated: Terminated) {
        self.groups.retain(|id, group| {
            let lives = group.id() != terminated.who;
            if !lives {
                println!("Device group actor for {id} has been terminated");
            }
            lives
        });
    }

    #[stopped]
    fn log_stop(&mut self) {
        println!("DeviceManager stopped");
    }
}

#[playhouse::main]
async fn main(system: &System) -> playhouse::Result<()> {
    let manager = system.spawn(DeviceManager::default());
    let device = |id: &str| manager.ask(RequestTrackDevice { group: "home".to_owned(), device: id.to_owned() });
    device("hall").await?.ask(RecordTemperature(19.5)).await?;
    device("attic").await?;
    println!("{:?}", manager.ask(RequestAllTemperatures("home".to_owned())).await?);
    device("attic").await?.ask(Passivate).await?;
    Ok(())
}
