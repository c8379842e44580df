//! Addresses: 16 bytes, copyable, keeping nothing alive.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::message::envelope::Resident;

impl RawAddress {
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
