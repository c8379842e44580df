//! Panics of a run, captured instead of printed.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Once;

/// Returns the message of a panic.
pub(crate) fn panic_message(thrown: &(dyn Any + Send)) -> String {
    let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

thread_local! {
    /// The first uncollected panic, while this thread captures panics.
    static PANIC: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Returns the first panic since the last call.
pub(crate) fn take_panic() -> Option<String> {
    PANIC.with_borrow_mut(|panic| panic.as_mut().and_then(Option::take))
}

/// A guard that captures the panics of this thread. A search meets the same panic many times, and reports it once.
pub(crate) struct PanicCapture;

impl PanicCapture {
    pub(crate) fn begin() -> PanicCapture {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let others = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                let kept = PANIC.try_with(|panic| match &mut *panic.borrow_mut() {
                    Some(first) => {
                        first.get_or_insert_with(|| PanicLine(info).to_string());
                        true
                    }
                    None => false,
                });
                if kept != Ok(true) {
                    others(info);
                }
            }));
        });
        PANIC.set(Some(None));
        PanicCapture
    }
}

impl Drop for PanicCapture {
    fn drop(&mut self) {
        PANIC.set(None);
    }
}

/// A panic in one line: its message and its place.
struct PanicLine<'a, 'b>(&'a std::panic::PanicHookInfo<'b>);

impl fmt::Display for PanicLine<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = panic_message(self.0.payload());
        match self.0.location() {
            Some(location) => write!(f, "{text} ({}:{})", location.file(), location.line()),
            None => f.write_str(&text),
        }
    }
}
