//! The entry points of a fuzzer: everything that a rejected peer can send. [`session`] is the innermost part.

use std::io::Read;

use crate::link::Link;
use crate::link::frame::{Head, Hello, Reply};
use crate::node::handshake::{self, MAGIC, Said, Word};
use crate::node::identity::{Challenge, Knock, Proof};
use crate::theater::Theater;

pub use crate::session::fuzz as session;

/// Reads `bytes` as the first words of a caller, and as those of a called theater, unchanged and after a valid beginning.
///
/// # Panics
/// If a word that was read differs from its own encoding, read again.
pub fn greeting(bytes: &[u8]) {
    fn word<W: Word + PartialEq + std::fmt::Debug>(words: &[u8]) {
        let heard = handshake::read::<W>(words).ok().and_then(Result::ok);
        if let Some(word) = &heard {
            let again = postcard::to_extend(word, Vec::new()).expect("it was read");
            assert_eq!(postcard::from_bytes(&again).as_ref(), Ok(word));
        }
        // In pieces, the result is the same.
        let (first, second) = words.split_at(words.len() / 2);
        let pieces = handshake::read::<W>(first.chain(second));
        assert_eq!(pieces.ok().and_then(Result::ok), heard);
    }
    let right = [&MAGIC[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    for words in [bytes, &right] {
        word::<Knock>(words);
        word::<Said<Challenge>>(words);
        word::<Said<Proof>>(words);
        word::<Hello>(words);
        word::<Said<Reply>>(words);
    }
}

/// Takes `bytes` apart as a frame.
///
/// # Panics
/// If the frame's head, written and read again, differs.
pub fn frame(bytes: &[u8]) {
    let Ok((head, rest)) = Head::read(bytes) else { return };
    assert!(rest.len() < bytes.len());
    let mut again = Vec::new();
    head.write(&mut again).expect("it was read");
    again.extend_from_slice(rest);
    assert_eq!(Head::read(&again).expect("it was written"), (head, rest));
}

/// Returns the number that starts an `actor` in `theater`.
pub fn kind_of_start(theater: &Theater, actor: &str) -> Option<usize> {
    theater.theater_core.registry.kinds().iter().position(|kind| kind.actor == actor && kind.message.is_none())
}

/// Gives the frames in `bytes`, each after its length (one byte), to an unconnected link of `theater`, and loses the link.
///
/// # Panics
/// If the link panics, or keeps more for the other end than was sent.
pub fn link(theater: &Theater, bytes: &[u8]) {
    let link = Link::of_a_rejected_peer(&theater.theater_core.link_table);
    let mut frames = 0;
    let mut rest = bytes;
    while let Some((&length, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(behind.len().min(usize::from(length)));
        link.take_of_rejected_peer(frame);
        frames += 1;
        rest = behind;
    }
    assert!(link.known_of_rejected_peer() <= frames);
    link.lose();
}
