//! Asks to several actors at once, and asks that are tried again.
//!
//! [`ask_many`] sends one request to many, with one deadline, and gathers all answers, the first that come, or those of a
//! majority. [`Retry`] asks again where an answer may still come; with an [`IdempotencyKey`] in the message and an
//! [`AnswerCache`] in the receiver, what was done is not done twice.
//!
//! Like an ask, each of them is sent when it is awaited (`.await`), waited for in a thread outside (`.wait()`), or handed to a
//! handler that is not `async` (`.then(ctx, ..)`). Dropping it while it waits takes back the requests that are not handled yet,
//! but not those that were sent to other theaters.

mod gather;
mod idempotency;
mod many;
mod retry;
mod too_few;

pub use self::idempotency::{AnswerCache, IdempotencyKey};
pub use self::many::{AllAnswers, AskMany, EachAnswer, Enough, FirstAnswers, ask_many};
pub use self::retry::{Retry, RetryAsk, RetryError};
pub use self::too_few::TooFewAnswers;
