//! What panics say, kept instead of printed.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Once;

/// What a panic said.
pub(crate) fn panic_message(thrown: &(dyn Any + Send)) -> String {
    let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}

thread_local! {
    /// While runs are made on this thread: the first panic that was not asked for.
    static PANIC: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// The first panic of this run since it was asked for.
pub(crate) fn take_panic() -> Option<String> {
    PANIC.with_borrow_mut(|panic| panic.as_mut().and_then(Option::take))
}

/// Panics on this thread are kept, not printed: a search meets the same ones again and again, and reports one.
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

/// A panic in one line: what it said, and where.
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
