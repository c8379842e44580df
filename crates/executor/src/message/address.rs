//! Addresses: 16 bytes, copyable, keeping nothing alive.

use std::fmt;
use std::hash::Hasher;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::memory::cell::{BOUNDED, Cell, status};
use crate::memory::record::{AsyncMail, ControlMail, FirstMail, OrderedMail, SyncMail};
use crate::message::envelope::{AnyControl, AsyncEnvelope, Control, Envelope, Resident};
use crate::message::send;
use crate::worker::inline_call;

/// The lanes of a stage, in the order of their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lane {
    /// Stop, kill, restart, death notices. Never refused, never dropped.
    System = 0,
    /// Messages that overtake normal ones.
    Urgent = 1,
    /// All other messages.
    Normal = 2,
}

/// An address without its type: the cell and `generation:32 | stage:16 | system:16`.
///
/// The stage is in the address, and a sender therefore never touches the cell of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawAddress {
    pub(crate) cell: NonNull<Cell>,
    pub(crate) tag: u64,
}

// SAFETY: an address only names a cell of type-stable memory; every use of it goes through the cell's atomics.
unsafe impl Send for RawAddress {}
// SAFETY: an address only names a cell of type-stable memory; it has no interior of its own.
unsafe impl Sync for RawAddress {}

// A panic in other code cannot leave an address broken.
impl std::panic::UnwindSafe for RawAddress {}
impl std::panic::RefUnwindSafe for RawAddress {}

/// Hashes addresses, which no attacker chooses to make them collide.
#[derive(Debug, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl RawAddress {
    /// Returns the address of the actor in `cell`.
    #[inline(always)]
    pub(crate) fn of(cell: NonNull<Cell>) -> RawAddress {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        RawAddress { cell, tag: (header.tag() & !status::MASK) | u64::from(header.system_word()) }
    }

    /// Returns the id of the actor's system.
    #[inline(always)]
    pub fn system(self) -> u16 {
        self.system_word() & !BOUNDED
    }

    /// Returns the id of the system with [`BOUNDED`]. If the actor's mailbox is bounded, it differs from the id of any
    /// system.
    #[inline(always)]
    pub(crate) fn system_word(self) -> u16 {
        self.tag as u16
    }

    /// Returns a number that the layer above keeps for the cell of the actor. It is 0 in a new cell, and stays when the
    /// actor ends.
    pub fn cell_number(self) -> &'static AtomicU32 {
        // SAFETY: cells are never freed.
        let cell: &'static Cell = unsafe { self.cell.as_ref() };
        &cell.number
    }

    /// Returns whether the actor's mailbox is bounded.
    pub fn is_bounded(self) -> bool {
        self.system_word() & BOUNDED != 0
    }

    /// Returns the stage of the actor.
    #[inline(always)]
    pub fn stage(self) -> u16 {
        (self.tag >> 16) as u16
    }

    #[inline(always)]
    pub(crate) fn identity(self) -> u64 {
        self.tag & !status::MASK
    }

    /// Gives the address a type again. The caller knows that the address was one of an `S`, because the executor does
    /// not check it.
    #[inline(always)]
    pub(crate) fn typed<S>(self) -> Address<S> {
        Address { raw: self, state: PhantomData }
    }

    /// Gives the address a type again, if its actor is an `S`. Returns `None` if the actor has ended.
    pub fn of_type<S: Resident>(self) -> Option<Address<S>> {
        // SAFETY: cells are never freed.
        let cell = unsafe { self.cell.as_ref() };
        // The kind was written before the address was made. If the cell has a new actor by now, of any kind, the
        // address is stale all the same.
        let fits = !self.is_stale() && (cell.kind().type_id)() == std::any::TypeId::of::<S>();
        fits.then(|| self.typed())
    }

    /// Gives the address a type again, if its actor is an `S` or has ended. An actor that has ended may be given any
    /// type.
    pub fn of_type_or_ended<S: Resident>(self) -> Option<Address<S>> {
        self.of_type().or_else(|| self.is_stale().then(|| self.typed()))
    }

    /// Returns the type of the actor at the address. Returns `None` if the actor has ended.
    pub fn resident_type(self) -> Option<std::any::TypeId> {
        // A cell whose actor has ended may have no kind.
        if self.is_stale() {
            return None;
        }
        // SAFETY: cells are never freed. The kind is that of the address's own incarnation, or of a later one; the
        // address is then stale.
        let kind = unsafe { self.cell.as_ref() }.kind();
        let id = (kind.type_id)();
        (!self.is_stale()).then_some(id)
    }

    /// Returns the name of the type of the actor at the address, for reports. Returns `None` if the actor has ended.
    pub fn resident_name(self) -> Option<&'static str> {
        if self.is_stale() {
            return None;
        }
        // SAFETY: cells are never freed. The kind is that of the address's own incarnation, or of a later one; the
        // address is then stale.
        let kind = unsafe { self.cell.as_ref() }.kind();
        let name = (kind.name)();
        (!self.is_stale()).then_some(name)
    }

    /// Returns whether the actor is known to have ended. False may be out of date at once; true stays true.
    pub fn is_stale(self) -> bool {
        // SAFETY: cells are never freed.
        let tag = unsafe { self.cell.as_ref() }.tag();
        tag >> 16 != self.tag >> 16 || tag & status::VACANT != 0
    }
}

impl fmt::Debug for RawAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:x}.{}", self.system(), self.cell.as_ptr() as usize, self.tag >> 32)
    }
}

/// The address of an `S`.
#[repr(transparent)]
pub struct Address<S> {
    raw: RawAddress,
    state: PhantomData<fn(S)>,
}

impl<S> Clone for Address<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Address<S> {}

impl<S> Address<S> {
    /// Returns the address without the type.
    #[inline(always)]
    pub fn raw(self) -> RawAddress {
        self.raw
    }
}

impl<S: Resident> Address<S> {
    /// # Safety
    /// The cell is occupied by an S.
    #[inline(always)]
    pub(crate) unsafe fn of_resident(cell: NonNull<Cell>) -> Self {
        RawAddress::of(cell).typed()
    }

    /// Sends a message whose handler runs to completion.
    #[inline(always)]
    pub fn send<E: Envelope<S>>(self, envelope: E) {
        send::post(self.raw, SyncMail(envelope));
    }

    /// Sends the first message of a new actor: no other message is handled before it, on any route. It
    /// `may_be_deferred` if it waits in the queue of the worker that the sender runs on (`deferred_starts.rs`).
    ///
    /// # Safety
    /// No other thread knows the address yet.
    pub(crate) unsafe fn send_first<E: Envelope<S>>(self, envelope: E, may_be_deferred: bool) {
        let bits = if may_be_deferred { status::NEW | status::DEFERRABLE } else { status::NEW };
        // SAFETY: cells are never freed; no other thread knows the address and writes the status.
        unsafe { self.raw.cell.as_ref() }.set_status(bits, true);
        send::post(self.raw, FirstMail(envelope));
    }

    /// Sends a message whose handler may wait.
    #[inline(always)]
    pub fn send_async<E: AsyncEnvelope<S>>(self, envelope: E) {
        send::post(self.raw, AsyncMail(envelope));
    }

    /// Sends a request whose sender waits for an answer. The sender does not wait for the receiver's worker as well.
    pub fn send_request<E: Envelope<S>>(self, envelope: E) {
        send::post_request(self.raw, SyncMail(envelope));
    }

    /// Does the same as [`Address::send_request`], for a handler that may wait.
    pub fn send_request_async<E: AsyncEnvelope<S>>(self, envelope: E) {
        send::post_request(self.raw, AsyncMail(envelope));
    }

    /// Does the same as [`Address::send_request`], if there is room for the request.
    ///
    /// # Errors
    /// Gives the message back if the receiver's [mailbox](crate::Mailbox) is full.
    pub fn try_send<E: Envelope<S>>(self, envelope: E) -> Result<(), E> {
        send::try_post(self.raw, SyncMail(envelope)).map_err(|mail| mail.0)
    }

    /// Does the same as [`Address::try_send`], for a handler that may wait.
    ///
    /// # Errors
    /// The same as for [`Address::try_send`].
    pub fn try_send_async<E: AsyncEnvelope<S>>(self, envelope: E) -> Result<(), E> {
        send::try_post(self.raw, AsyncMail(envelope)).map_err(|mail| mail.0)
    }

    /// Sends a message in the urgent lane.
    pub fn send_urgent<E: Envelope<S>>(self, envelope: E) {
        send::post_lane(self.raw, Lane::Urgent, SyncMail(envelope));
    }

    /// Sends a message whose handler may wait, in the urgent lane.
    pub fn send_urgent_async<E: AsyncEnvelope<S>>(self, envelope: E) {
        send::post_lane(self.raw, Lane::Urgent, AsyncMail(envelope));
    }

    /// Sends a request to the cell, in the system lane.
    pub fn send_control<C: Control<S>>(self, control: C) {
        send::post_lane(self.raw, Lane::System, ControlMail(AnyControl::new(control)));
    }

    /// Sends a request to the cell behind the queue (except a start, which may be deferred behind the request). The
    /// request passes the messages that wait for a suspended handler. Does not wait if the receiver's worker is
    /// overloaded, because all others may wait for the sender.
    pub fn send_control_behind<C: Control<S>>(self, control: C) {
        send::post_request(self.raw, ControlMail(AnyControl::new(control)));
    }

    /// Sends a request to the cell in the urgent lane. Sent from a request that was itself sent
    /// [behind](Address::send_control_behind) the queue, it comes behind all messages that were sent in any lane before
    /// that request. Messages of a higher lane may still have been in the inbox.
    pub fn send_control_urgently<C: Control<S>>(self, control: C) {
        send::post_lane(self.raw, Lane::Urgent, ControlMail(AnyControl::new(control)));
    }

    /// Sends a request to the cell behind the messages that were sent to it before, also the deferred ones. Does not
    /// wait, like [`Address::send_control_behind`].
    pub fn send_control_in_order<C: Control<S>>(self, control: C) {
        send::post_request(self.raw, OrderedMail(AnyControl::new(control)));
    }

    /// Runs the handler at once, on the caller's stack, if no program can tell that from sending: the actor is idle,
    /// belongs to the running worker, and no message is queued for it (kumar §8.1.3). Otherwise gives the envelope
    /// back.
    ///
    /// # Errors
    /// The envelope, if the short cut cannot be taken.
    pub fn call_now<E: Envelope<S>>(self, envelope: E) -> Result<(), E> {
        inline_call::call_now(self.raw, SyncMail(envelope)).map_err(|mail| mail.0)
    }

    /// Does the same as [`Address::call_now`], for a handler that may wait.
    ///
    /// # Errors
    /// The envelope, if the short cut cannot be taken.
    pub fn call_now_async<E: AsyncEnvelope<S>>(self, envelope: E) -> Result<(), E> {
        inline_call::call_now(self.raw, AsyncMail(envelope)).map_err(|mail| mail.0)
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Address<u8>>() == 16);

/// A method to send an `M` to an `S`, named by a type because it can then be erased.
pub trait Sends<S, M, R = ()> {
    /// Sends the message and returns the result.
    fn send(to: Address<S>, message: M) -> R;
}

/// An address that takes an `M`, whatever the type of its actor.
pub struct Port<M, R = ()> {
    raw: RawAddress,
    send: fn(RawAddress, M) -> R,
}

impl<M, R> Clone for Port<M, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, R> Copy for Port<M, R> {}

/// Asked before a request is sent that could not be handled at once: returns whether to send it.
pub type MaySend<'a> = &'a mut dyn FnMut() -> bool;

/// A method to send an `M` with the right to answer it, a `P`, to an `S`. It is named by a type because it can then be
/// erased.
pub trait Requests<S, M, P> {
    /// Takes the message out of `message`, and sends the request. With `may_send`, its handler is run at once if no
    /// program can tell that from sending.
    ///
    /// The message comes by reference, because it may be large, and each function that takes it by value reserves space
    /// for it on the stack.
    fn request(to: Address<S>, message: &mut Option<M>, reply: P, may_send: Option<MaySend<'_>>);
}

/// An address that takes requests of type `M`, whatever the type of its actor.
pub struct RequestPort<M, P> {
    raw: RawAddress,
    request: fn(RawAddress, &mut Option<M>, P, Option<MaySend<'_>>),
}

impl<M, P> Clone for RequestPort<M, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, P> Copy for RequestPort<M, P> {}

impl<M, P> RequestPort<M, P> {
    /// Sends a request: see [`Requests::request`].
    #[inline]
    pub fn request(self, message: &mut Option<M>, reply: P, may_send: Option<MaySend<'_>>) {
        (self.request)(self.raw, message, reply, may_send);
    }

    /// Returns the address behind the port.
    pub fn raw(self) -> RawAddress {
        self.raw
    }
}

impl<S> Address<S> {
    /// Returns the address as a port that sends requests by `W`.
    #[inline]
    pub fn request_port<M, P, W: Requests<S, M, P>>(self) -> RequestPort<M, P> {
        // Like in `port`: the type that the function assumes is the address's own.
        let request = |raw: RawAddress, message: &mut Option<M>, reply: P, may_send: Option<MaySend<'_>>| {
            W::request(raw.typed::<S>(), message, reply, may_send);
        };
        RequestPort { raw: self.raw, request }
    }

    /// Returns the address as a port that sends by `W`.
    pub fn port<M, W: Sends<S, M, R>, R>(self) -> Port<M, R> {
        // The function pointer is made together with the address. The type that it assumes is therefore the address's
        // own.
        Port { raw: self.raw, send: |raw, message| W::send(raw.typed::<S>(), message) }
    }
}

impl<M, R> Port<M, R> {
    /// Sends `message`.
    #[inline]
    pub fn send(self, message: M) -> R {
        (self.send)(self.raw, message)
    }

    /// Returns the address behind the port.
    pub fn raw(self) -> RawAddress {
        self.raw
    }
}
