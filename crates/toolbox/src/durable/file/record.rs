//! The form of a state in a file, and the name of the file.
//!
//! ```text
//! "playhouse-state1"  16 bytes
//! checksum             8 bytes  SipHash-2-4 of all that follows
//! revision             8 bytes  numbers are little-endian
//! length of the key    8 bytes
//! length of the state  8 bytes
//! key, state
//! ```

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::durable::store::Saved;

const MAGIC: &[u8; 16] = b"playhouse-state1";
const ENDING: &str = ".state";

/// Returns the file name of a key. Names of different keys differ by more than the case of letters.
pub(super) fn file_of(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + ENDING.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name + ENDING
}

/// Returns the key of a file name, or `None` if the file is no state.
pub(super) fn key_of(file: &str) -> Option<String> {
    let mut key = Vec::new();
    let mut rest = file.strip_suffix(ENDING)?;
    while let Some(byte) = rest.bytes().next() {
        let (byte, length) = match byte {
            b'%' => (u8::from_str_radix(rest.get(1..3)?, 16).ok()?, 3),
            _ => (byte, 1),
        };
        key.push(byte);
        rest = rest.get(length..)?;
    }
    let key = String::from_utf8(key).ok()?;
    (file_of(&key) == file).then_some(key)
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Encodes a state.
pub(super) fn write(key: &str, revision: u64, bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(48 + key.len() + bytes.len());
    body.extend_from_slice(MAGIC);
    body.extend_from_slice(&[0; 8]);
    for number in [revision, key.len() as u64, bytes.len() as u64] {
        body.extend_from_slice(&number.to_le_bytes());
    }
    body.extend_from_slice(key.as_bytes());
    body.extend_from_slice(bytes);
    let sum = checksum(&body[24..]).to_le_bytes();
    body[16..24].copy_from_slice(&sum);
    body
}

/// Decodes the state of this key.
///
/// # Errors
/// The file is damaged, or has another key. The text says what is wrong.
pub(super) fn read(key: &str, file: &[u8]) -> Result<Saved, String> {
    let rest = file.strip_prefix(MAGIC).ok_or("the file does not begin with the mark of a state")?;
    let (numbers, rest) = rest
        .split_first_chunk::<32>()
        .ok_or_else(|| format!("the file ends after {} bytes, within its header", file.len()))?;
    let [sum, revision, key_length, length] =
        [0, 8, 16, 24].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| numbers[at + byte])));
    let (expected, found) = (u128::from(key_length) + u128::from(length), rest.len() as u128);
    if found != expected {
        return Err(format!("the file has {found} bytes behind its header, not {expected}"));
    }
    if checksum(&file[24..]) != sum {
        return Err("the checksum of the file does not match its contents".to_owned());
    }
    // The length fits, because it is at most `found`.
    let (name, bytes) = rest.split_at(key_length as usize);
    if name != key.as_bytes() {
        return Err(format!("the file has the state of {:?}", String::from_utf8_lossy(name)));
    }
    Ok(Saved { revision, bytes: bytes.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_files_are_one_to_one() {
        let keys = ["a", "A", "a/b", "a%2fb", "..", ".", "\u{e9}", "e\u{301}", "x.state", " ", "%", "new", "lock"];
        let files: std::collections::BTreeSet<_> = keys.iter().map(|key| file_of(key).to_lowercase()).collect();
        assert_eq!(files.len(), keys.len());
        for key in keys {
            assert_eq!(key_of(&file_of(key)).as_deref(), Some(key));
        }
        assert_eq!(file_of("account/7"), "account%2f7.state");
        assert!(file_of(&"/".repeat(crate::durable::KEY_BYTES_MAX)).len() <= 255);
        for foreign in
            ["lock", "new", "mark", "A.state", "%41", "%2F.state", "%4.state", "%zz.state", "%ff.state", "\u{e9}.state"]
        {
            assert_eq!(key_of(foreign), None, "{foreign}");
        }
    }

    /// The bytes were computed by an independent program. Files of released versions stay readable as long as this
    /// test passes.
    #[test]
    fn the_bytes_of_a_record_stay_as_they_are() {
        let mut expected = b"playhouse-state1".to_vec();
        expected.extend_from_slice(&[0xd2, 0x4e, 0x5f, 0xe7, 0x7d, 0xd2, 0x0e, 0xcb]);
        expected.extend_from_slice(b"\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0keythe state");
        assert_eq!(write("key", 7, b"the state"), expected);
    }

    // GUARANTEE: A state is intact or reported as damaged
    #[test]
    fn a_record_that_was_changed_anywhere_is_no_record() {
        let saved = Saved { revision: 7, bytes: b"the state".to_vec() };
        let whole = write("key", saved.revision, &saved.bytes);
        assert_eq!(read("key", &whole), Ok(saved));
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                assert!(read("key", &changed).is_err(), "byte {at}, bit {bit}");
            }
            assert!(read("key", &whole[..at]).is_err(), "cut at {at}");
            // The rest was never written.
            let mut torn = whole.clone();
            torn[at..].fill(0);
            assert!(read("key", &torn).is_err() || torn == whole, "torn at {at}");
        }
        assert!(read("key", &[&*whole, b"!"].concat()).is_err());
        assert_eq!(read("other", &whole).unwrap_err(), "the file has the state of \"key\"");
    }

    // GUARANTEE: Stores stay readable
    #[test]
    fn the_form_of_a_record_stays() {
        let mut expected = b"playhouse-state1".to_vec();
        expected.extend_from_slice(&0x9e4c_9245_f915_e999_u64.to_le_bytes());
        expected.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(b"kab");
        assert_eq!(write("k", 1, b"ab"), expected);
    }
}
