//! The answers of an HTTP/1.1 server, as far as the load needs them.

use std::str;

/// An answer that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    /// The code and its reason, such as `200 OK`.
    pub(super) status: &'a str,
    pub(super) body: &'a str,
}

impl<'a> Answer<'a> {
    /// Reads the only answer in `bytes`; returns `None` if they end before it does.
    ///
    /// # Errors
    ///
    /// Describes an answer without a length, and bytes behind the answer.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Option<Self>, &'static str> {
        const END: &[u8] = b"\r\n\r\n";
        let Some(head_len) = bytes.windows(END.len()).position(|window| window == END) else { return Ok(None) };
        let head = str::from_utf8(&bytes[..head_len]).map_err(|_| "the head of an answer is not UTF-8")?;
        let (first, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = first.strip_prefix("HTTP/1.1 ").ok_or("an answer is not one of HTTP/1.1")?;
        let lengths = fields.split("\r\n").filter_map(|field| {
            let (name, value) = field.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
        });
        let len = lengths.last().and_then(Result::ok).ok_or("an answer does not say how long it is")?;
        let body = &bytes[head_len + END.len()..];
        if body.len() > len {
            return Err("there is something behind an answer");
        }
        if body.len() < len {
            return Ok(None);
        }
        let body = str::from_utf8(body).map_err(|_| "the body of an answer is not UTF-8")?;
        Ok(Some(Self { status, body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_it_is_complete() {
        let text = b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nContent-Length:  2\r\n\r\nno";
        for end in 0..text.len() {
            assert_eq!(Answer::parse(&text[..end]), Ok(None), "{end}");
        }
        assert_eq!(Answer::parse(text), Ok(Some(Answer { status: "404 Not Found", body: "no" })));
    }

    #[test]
    fn malformed_answers_are_errors() {
        let parse = |text: &'static str| Answer::parse(text.as_bytes()).unwrap_err();
        assert_eq!(parse("HTTP/1.0 200 OK\r\n\r\n"), "an answer is not one of HTTP/1.1");
        assert_eq!(parse("HTTP/1.1 200 OK\r\n\r\n"), "an answer does not say how long it is");
        assert_eq!(parse("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), "an answer does not say how long it is");
        assert_eq!(parse("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"), "there is something behind an answer");
    }
}
