//! The kinds of envelopes, which name the user code that runs.

/// The kind of an envelope, for observers and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MailKind {
    /// The first message of an actor: its start.
    Start,
    /// A message.
    Message,
    /// A message whose sender waits for an answer.
    Request,
    /// The answer to a request, for a continuation.
    Answer,
    /// A message that a timer has sent.
    Timer,
    /// An event that a handler waits for has happened.
    WakeUp,
    /// Any other request: stop, watch, the notice that an actor has ended, ...
    Control,
}
