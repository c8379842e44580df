//! The load on a web server, with a server of a few lines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use playhouse_bench::Failure;
use playhouse_bench::load::{Answered, Load};

/// The posts of each room.
type Posts = Arc<Mutex<HashMap<String, usize>>>;

/// Returns the status and the body that answer a request to a room: of a text, if it is a post.
fn right(posts: &Posts, room: &str, text: Option<&str>) -> (&'static str, String) {
    let mut posts = posts.lock().unwrap();
    let count = posts.entry(room.to_owned()).or_default();
    match text {
        Some(text) => {
            assert_eq!(text, "hello, room");
            *count += 1;
            ("200 OK", count.to_string())
        }
        None => ("200 OK", format!("[{}]", vec!["\"hello, room\""; (*count).min(20)].join(","))),
    }
}

/// Starts a server that answers as `answer` says, and closes a connection instead of answering where that says nothing.
fn server<A>(answer: A) -> (SocketAddr, Posts)
where
    A: Fn(&Posts, &str, Option<&str>) -> Option<(&'static str, String)> + Clone + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let posts = Posts::default();
    let of_server = posts.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, posts, answer) = (stream.unwrap(), of_server.clone(), answer.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || while answer_one(&stream, &posts, &answer).is_some() {});
        }
    });
    (address, posts)
}

/// Reads one request, and answers it. Returns `None` if the connection is to be closed.
fn answer_one(
    mut stream: &TcpStream,
    posts: &Posts,
    answer: impl Fn(&Posts, &str, Option<&str>) -> Option<(&'static str, String)>,
) -> Option<()> {
    // The client sends nothing more before it has the answer: no bytes are lost in the buffer.
    let mut from = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" if head.is_empty() => return None,
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let (method, path) = head[0].strip_suffix(" HTTP/1.1").unwrap().split_once(' ').unwrap();
    let len = head.iter().find_map(|field| field.strip_prefix("Content-Length: "));
    let mut text = vec![0; len.map_or(0, |len| len.parse().unwrap())];
    from.read_exact(&mut text).ok()?;
    let text = (method == "POST").then(|| String::from_utf8(text).unwrap());
    let (status, body) = answer(posts, path.strip_prefix("/rooms/").unwrap(), text.as_deref())?;
    // In two parts, of which the second may come later.
    stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len()).as_bytes()).ok()?;
    stream.write_all(format!("\r\n{body}").as_bytes()).ok()
}

fn load(server: SocketAddr) -> Result<Answered, Failure> {
    Load { connections: 8, requests: 1_000, seed: 7, limit: Duration::from_secs(60) }.send_to(server)
}

#[test]
fn every_request_is_answered_and_counted() {
    let (address, posts) = server(|posts, room, text| Some(right(posts, room, text)));
    let answered = load(address).unwrap();
    assert_eq!((answered.times_ns.len(), answered.posts), (1_000, 800));
    assert!(answered.elapsed > Duration::ZERO && answered.times_ns.iter().all(|ns| *ns > 0));
    assert_eq!(posts.lock().unwrap().values().sum::<usize>(), 800);
    // Rooms that are not empty answer with other numbers.
    let failure = load(address).unwrap_err().to_string();
    assert!(failure.contains(" was answered with a wrong body: "), "{failure}");
}

#[test]
fn another_status_is_an_error_that_names_the_request_and_the_answer() {
    let (address, _) = server(|posts, room, text| {
        let full = posts.lock().unwrap().len() >= 100;
        Some(if full { ("500 Internal Server Error", "no room".to_owned()) } else { right(posts, room, text) })
    });
    let failure = load(address).unwrap_err().to_string();
    let (request, answer) = failure.split_once(" was answered with ").unwrap();
    assert!(request.starts_with("POST /rooms/") || request.starts_with("GET /rooms/"), "{failure}");
    assert_eq!(answer, "500 Internal Server Error: no room");
}

#[test]
fn a_connection_that_the_server_closes_is_an_error() {
    let (address, _) = server(|posts, room, text| {
        let full = posts.lock().unwrap().len() >= 100;
        (!full).then(|| right(posts, room, text))
    });
    let failure = load(address).unwrap_err().to_string();
    assert!(failure.starts_with("the server closed a connection before it answered "), "{failure}");
}

#[test]
fn a_server_that_does_not_answer_is_given_up_after_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let load = Load { connections: 1, requests: 3, seed: 1, limit: Duration::from_millis(1) };
    let failure = load.send_to(listener.local_addr().unwrap()).unwrap_err();
    assert_eq!(failure.to_string(), "after 1ms, 3 requests were not answered");
}
