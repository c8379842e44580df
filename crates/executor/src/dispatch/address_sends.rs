//! The sends of an address: messages and requests, in each lane.

use crate::dispatch::thunks::{AsyncMail, ControlMail, FirstMail, OrderedMail, SyncMail};
use crate::dispatch::{inline_call, send};
use crate::memory::cell::status;
use crate::memory::raw_address::Lane;
use crate::message::address::Address;
use crate::message::envelope::{AnyControl, AsyncEnvelope, Control, Envelope, Resident};

impl<S: Resident> Address<S> {
    /// Sends a message whose handler runs to completion.
    #[inline(always)]
    pub fn send<E: Envelope<S>>(self, envelope: E) {
        send::post(self.raw(), SyncMail(envelope));
    }

    /// Sends the first message of a new actor: no other message is handled before it, on any route. It
    /// `may_be_deferred` if it waits in the queue of the worker that the sender runs on (`deferred_starts.rs`).
    ///
    /// # Safety
    /// No other thread knows the address yet.
    pub(crate) unsafe fn send_first<E: Envelope<S>>(self, envelope: E, may_be_deferred: bool) {
        let bits = if may_be_deferred { status::NEW | status::DEFERRABLE } else { status::NEW };
        // SAFETY: cells are never freed; no other thread knows the address and writes the status.
        unsafe { self.raw().cell.as_ref() }.set_status(bits, true);
        send::post(self.raw(), FirstMail(envelope));
    }

    /// Sends a message whose handler may wait.
    #[inline(always)]
    pub fn send_async<E: AsyncEnvelope<S>>(self, envelope: E) {
        send::post(self.raw(), AsyncMail(envelope));
    }

    /// Sends a request whose sender waits for an answer. The sender does not wait for the receiver's worker as well.
    pub fn send_request<E: Envelope<S>>(self, envelope: E) {
        send::post_request(self.raw(), SyncMail(envelope));
    }

    /// Does the same as [`Address::send_request`], for a handler that may wait.
    pub fn send_request_async<E: AsyncEnvelope<S>>(self, envelope: E) {
        send::post_request(self.raw(), AsyncMail(envelope));
    }

    /// Does the same as [`Address::send_request`], if there is room for the request.
    ///
    /// # Errors
    /// Gives the message back if the receiver's [mailbox](crate::Mailbox) is full.
    pub fn try_send<E: Envelope<S>>(self, envelope: E) -> Result<(), E> {
        send::try_post(self.raw(), SyncMail(envelope)).map_err(|mail| mail.0)
    }

    /// Does the same as [`Address::try_send`], for a handler that may wait.
    ///
    /// # Errors
    /// The same as for [`Address::try_send`].
    pub fn try_send_async<E: AsyncEnvelope<S>>(self, envelope: E) -> Result<(), E> {
        send::try_post(self.raw(), AsyncMail(envelope)).map_err(|mail| mail.0)
    }

    /// Sends a message in the urgent lane.
    pub fn send_urgent<E: Envelope<S>>(self, envelope: E) {
        send::post_lane(self.raw(), Lane::Urgent, SyncMail(envelope));
    }

    /// Sends a message whose handler may wait, in the urgent lane.
    pub fn send_urgent_async<E: AsyncEnvelope<S>>(self, envelope: E) {
        send::post_lane(self.raw(), Lane::Urgent, AsyncMail(envelope));
    }

    /// Sends a request to the cell, in the system lane.
    pub fn send_control<C: Control<S>>(self, control: C) {
        send::post_lane(self.raw(), Lane::System, ControlMail(AnyControl::new(control)));
    }

    /// Sends a request to the cell behind the queue (except a start, which may be deferred behind the request). The
    /// request passes the messages that wait for a suspended handler. Does not wait if the receiver's worker is
    /// overloaded, because all others may wait for the sender.
    pub fn send_control_behind<C: Control<S>>(self, control: C) {
        send::post_request(self.raw(), ControlMail(AnyControl::new(control)));
    }

    /// Sends a request to the cell in the urgent lane. Sent from a request that was itself sent
    /// [behind](Address::send_control_behind) the queue, it comes behind all messages that were sent in any lane before
    /// that request. Messages of a higher lane may still have been in the inbox.
    pub fn send_control_urgently<C: Control<S>>(self, control: C) {
        send::post_lane(self.raw(), Lane::Urgent, ControlMail(AnyControl::new(control)));
    }

    /// Sends a request to the cell behind the messages that were sent to it before, also the deferred ones. Does not
    /// wait, like [`Address::send_control_behind`].
    pub fn send_control_in_order<C: Control<S>>(self, control: C) {
        send::post_request(self.raw(), OrderedMail(AnyControl::new(control)));
    }

    /// Runs the handler at once, on the caller's stack, if no program can tell that from sending: the actor is idle,
    /// belongs to the running worker, and no message is queued for it (kumar §8.1.3). Otherwise gives the envelope
    /// back.
    ///
    /// # Errors
    /// The envelope, if the short cut cannot be taken.
    pub fn call_now<E: Envelope<S>>(self, envelope: E) -> Result<(), E> {
        inline_call::call_now(self.raw(), SyncMail(envelope)).map_err(|mail| mail.0)
    }

    /// Does the same as [`Address::call_now`], for a handler that may wait.
    ///
    /// # Errors
    /// The envelope, if the short cut cannot be taken.
    pub fn call_now_async<E: AsyncEnvelope<S>>(self, envelope: E) -> Result<(), E> {
        inline_call::call_now(self.raw(), AsyncMail(envelope)).map_err(|mail| mail.0)
    }
}
