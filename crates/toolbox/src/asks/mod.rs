//! Asks to several actors at once, and asks with retries.
//!
//! [`ask_many`] sends one request to several actors under one deadline. It gathers all answers, the first that
//! arrive, or those of a majority. [`Retry`] repeats an ask that may still succeed. An [`IdempotencyKey`] in the
//! message and an [`AnswerCache`] in the receiver prevent that a request takes effect twice.
//!
//! A request is sent when it is awaited (`.await`), waited for in a thread outside (`.wait()`), or piped to a handler
//! that is not `async` (`.then(ctx, ..)`). Dropping it takes back the requests that are not handled yet, except those
//! that were sent to other theaters.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//!
//! use playhouse::asks::{Retry, ask_many};
//! use playhouse::prelude::*;
//!
//! struct Clock;
//!
//! #[actor]
//! impl Clock {
//!     #[message(derive(Clone))]
//!     fn now(&self) -> u64 { 12 }
//! }
//!
//! let system = System::start()?;
//! let clocks = [system.spawn(Clock), system.spawn(Clock)];
//!
//! let first = ask_many(clocks, Now).within(Duration::from_secs(1)).first(1).wait()?;
//! assert_eq!(first[0].1, 12);
//!
//! let retry = Retry::attempts(3).within(Duration::from_secs(1));
//! assert_eq!(retry.ask(clocks[0], Now).wait()?, 12);
//! # system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod gather;
mod idempotency;
mod many;
mod retry;
mod too_few;

pub use self::idempotency::{AnswerCache, IdempotencyKey};
pub use self::many::{AllAnswers, AskMany, EachAnswer, Enough, FirstAnswers, ask_many};
pub use self::retry::{Retry, RetryAsk, RetryError};
pub use self::too_few::TooFewAnswers;
