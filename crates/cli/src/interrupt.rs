//! Ctrl-C.

use std::sync::mpsc::Sender;

/// Sends `event` once the user presses Ctrl-C, instead of ending the program without a word.
pub fn send_on_interrupt<E: Clone + Send + 'static>(sender: Sender<E>, event: E) {
    // Where no handler can be set the signal does what it always did, which is good enough.
    let _ = ctrlc::set_handler(move || {
        let _ = sender.send(event.clone());
    });
}
