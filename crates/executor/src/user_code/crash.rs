//! Crashes and ends of actors: the payload of a panic or the error of a handler, with its origin.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;

use crate::user_code::mail_kind::MailKind;
use crate::user_code::{ORIGIN, contained, discard};

/// The end of an actor, as passed to [`Resident::ended`](crate::Resident::ended).
#[derive(Debug)]
pub enum Ending {
    /// The actor was asked to stop, or asked itself.
    Stopped,
    /// The actor was killed.
    Killed,
    /// The actor crashed and was not restarted.
    Crashed(Crash),
    /// The system was shut down.
    Shutdown,
}

/// The cause of a crash.
pub enum Crash {
    /// A handler panicked; the payload of the panic.
    Panic(Payload),
    /// A handler called [`Cx::fail`](crate::Cx::fail).
    Error(Failure),
}

impl std::fmt::Debug for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Crash::Panic(_) => write!(f, "Panic({:?})", self.describe()),
            Crash::Error(_) => write!(f, "Error({})", self.describe()),
        }
    }
}

impl Crash {
    /// Returns the circumstances of the crash, without its text.
    pub fn origin(&self) -> &Origin {
        match self {
            Crash::Panic(payload) => payload.origin(),
            Crash::Error(error) => error.origin(),
        }
    }

    /// Returns the same as [`Crash::origin`], to be completed.
    pub fn origin_mut(&mut self) -> &mut Origin {
        match self {
            Crash::Panic(payload) => payload.origin_mut(),
            Crash::Error(error) => error.origin_mut(),
        }
    }

    /// Returns the message of the panic or the error.
    pub fn describe(&self) -> String {
        match self {
            Crash::Panic(payload) => text_of(&**payload).unwrap_or("a panic without a text").to_owned(),
            Crash::Error(error) => error.text(),
        }
    }
}

/// The circumstances of a crash, without its text.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The crash was reported already.
    pub is_reported: bool,
    /// The kind and the name of what the actor was running.
    pub during: Option<(MailKind, &'static str)>,
    /// The file, line and column of the panic, or of the call of `fail`. Unknown for a panic that was passed on from
    /// another thread, or if the program has replaced the panic hook since its first system was started.
    pub place: Option<String>,
}

/// The payload of a panic. Its drop never panics.
pub struct Payload(ManuallyDrop<Box<dyn Any + Send>>, Origin);

impl Payload {
    pub(crate) fn origin(&self) -> &Origin {
        &self.1
    }

    pub(crate) fn origin_mut(&mut self) -> &mut Origin {
        &mut self.1
    }

    /// Creates a payload that holds `value`, like that of a panic with it. Its origin is not known.
    pub fn new(value: impl Any + Send) -> Payload {
        Payload(ManuallyDrop::new(Box::new(value)), Origin::default())
    }
}

impl Deref for Payload {
    type Target = dyn Any + Send;

    fn deref(&self) -> &Self::Target {
        &**self.0
    }
}

/// Converts a panic that this thread has just caught: the payload has the origin that was noted last. The place is left
/// out if it belongs to another panic, as after `resume_unwind`, which calls no hook.
impl From<Box<dyn Any + Send>> for Payload {
    fn from(payload: Box<dyn Any + Send>) -> Payload {
        let (mut origin, text) = ORIGIN.try_with(RefCell::take).unwrap_or_default();
        if text.as_deref() != text_of(&*payload) {
            origin.place = None;
        }
        Payload(ManuallyDrop::new(payload), origin)
    }
}

/// Returns the text of a panic, if it has one.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Payload")
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: taken once, because this value is being dropped.
        discard(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// An error of a program. Its drop never panics, and neither does its text.
pub struct Failure(ManuallyDrop<Box<dyn Error + Send>>, Origin);

impl Failure {
    /// Notes the code that the actor was running when it failed.
    pub(crate) fn note(&mut self, about: (MailKind, &'static str)) {
        self.1.during = Some(about);
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.1
    }

    pub(crate) fn origin_mut(&mut self) -> &mut Origin {
        &mut self.1
    }

    /// Creates an error of the program, at the place of the caller.
    #[track_caller]
    pub fn new(error: Box<dyn Error + Send + Sync>) -> Failure {
        let place = Some(Location::caller().to_string());
        Failure(ManuallyDrop::new(error), Origin { place, ..Origin::default() })
    }

    /// Creates an error of the runtime itself, which has no place in the program.
    pub fn without_place(error: impl Error + Send + 'static) -> Failure {
        Failure(ManuallyDrop::new(Box::new(error)), Origin::default())
    }

    /// Returns the text of the error.
    pub(crate) fn text(&self) -> String {
        contained(|| self.0.to_string()).unwrap_or_else(|| "an error whose `Display` panicked".to_owned())
    }
}

impl Deref for Failure {
    type Target = dyn Error + Send;

    fn deref(&self) -> &Self::Target {
        &**self.0
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        // SAFETY: taken once, because this value is being dropped.
        let error = unsafe { ManuallyDrop::take(&mut self.0) };
        contained(|| drop(error)).unwrap_or(());
    }
}
